"""`utuple bench dropping`: readers that come and go at random, beside the ON/OFF queue's model."""
