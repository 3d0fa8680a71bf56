"""`utuple plan`: capacity planning from the command line. What is planned lies in `ops_sim/`."""
