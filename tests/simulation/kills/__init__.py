"""Real processes, killed by SIGKILL at every boundary there is: nothing lost, nothing twice.

`make kills` runs many schedules by hand; the tests run some. What a schedule is: `script.py`. Where a process
dies: `doom.py`. The world that the effects outlive it in: `shop.py`. What must hold afterwards: `judging.py`.
"""
