"""Dropping what arrives while a reader is away (paper 004): the model, checked, and compared with other mechanisms.

The closed form is `utuple/cluster/on_off_queue.py`, which the servers compute ζ by. Here are `chain`, the same queue solved
numerically, `simulation`, the same queue and the paper's other mechanisms event by event, and `study`, which makes the
tables of figures 4, 6 and 7.
"""
