"""The scenario that `utuple plan new` writes: every key with its meaning, ready to run."""

FIRST_DAY = "2026-04-01"
SCENARIO = f"""\
# A scenario for `utuple plan sweep FILE`. Every combination of demands, policies and worlds is simulated day by day.
# Shares are fractions: 0.9 is 90 %. What is commented out is the default.

[plan]
name = "my plan"
days = 1000
worlds = 200             # possible worlds of each demand: other growth, noise, bursts, delays
seed = 1                 # the same seed gives the same worlds, on any machine
servers_start = 10
start = {FIRST_DAY}       # the date of day 1; without it dates are told as days
application = "A"        # table 2 of the paper: A (sensors) or B (sensors and actuators)
cost = "paper"           # paper, paper-variant, calibrated (the last `utuple plan calibrate`), or a file
risk = 0.05              # in this share of the scenarios load may once exceed what there is
# day_cost = 1.0         # what a server costs a day

# One [[demand]] for each course the future may take.
[[demand]]
name = "steady"
growth = "linear"        # linear or exponential
# devices_start = 0.0
devices_per_day = 10000  # of linear growth
# doubling_days = 365.0  # of exponential growth, which needs devices_start
growth_spread = 0.15     # how unsure growth is: about ±15 % between worlds
# churn_per_day = 0.0    # the share of the devices that leaves every day
# season_share = 0.0     # 0.3: a season lifts and lowers the load by 30 %
# season_days = 365.0
# bursts_per_year = 0.0
# burst_share = 0.0      # 1.0: a burst doubles the load
# burst_days = 3
noise = 0.03             # from day to day, about ±3 %
lead_time_days = 30      # from the decision to buy to the installation
lead_time_spread = 0.2   # deliveries are late by about 20 %

[[demand]]
name = "it takes off"
growth = "exponential"
devices_start = 1000000
doubling_days = 300
growth_spread = 0.2
noise = 0.05
season_share = 0.1
bursts_per_year = 2
burst_share = 0.3
burst_days = 5
lead_time_days = 30

# Single policies; the defaults are the paper's rule.
[[policy]]
name = "paper"
# horizon_days = 60              # how far ahead load is predicted
# window_days = 7                # from how many days
# buy_above = 0.9                # predicted usage above this: buy
# size_below = 0.7               # so many that it falls below this
# predictor = "linear"           # level (no trend), linear, growth (per cent a day)
# size_for_installation = false  # true: the horizon is counted from the installation
# orders_count = true            # servers on order count in the test against buy_above

# And every combination of these.
[grid]
horizon_days = [45, 60, 90]
window_days = [7, 28]
buy_above = [0.8, 0.9]
size_below = [0.6, 0.7]
predictor = ["linear"]
"""
