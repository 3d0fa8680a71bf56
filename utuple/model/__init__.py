"""The model: uTuples, conditions, matching, keys and sections. Pure.

utuple                 the uTuple: two halves, each exact or a template; its kind follows
condition, area        what a template asks of one field, and of the position
value                  what data may hold, how values compare, their one encoding
match                  `matches`: the one relation, which every index and statement is tested against
key, section           the 64-bit point a family lies at, and slices of the hash space
identity               ids: UUIDv7 of the client, and fixed ones of named readers' formals
columns, packed        many EAs or CFs as columns; an EF or CA as it is stored and travels
limits                 every limit, with its reason
portions, weight       cutting what is large into messages; what deliveries weigh in a window
"""
