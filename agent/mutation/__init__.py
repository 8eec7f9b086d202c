"""The mutation test: replay a run with one constraint changed, and read the trace against a matrix of claims.

from agent.mutation import mutate

mutate(make_tools, goal).assert_holds()
"""

from agent.mutation.experiment import Experiment
from agent.mutation.ground import Ground, Supply
from agent.mutation.kinds import KINDS, Kind
from agent.mutation.kit import mutate
from agent.mutation.report import Report

__all__ = ["KINDS", "Experiment", "Ground", "Kind", "Report", "Supply", "mutate"]
