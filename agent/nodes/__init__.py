"""Phase nodes, one file each: read the state, call one port, let the core decide, return an update."""
