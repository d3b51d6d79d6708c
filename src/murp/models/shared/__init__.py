"""Formulas and base classes that several models share.

dot_product.py       base: the score is one inner product with the candidate
flat_distance.py     base: minus a squared Euclidean distance, plus biases
tangent_distance.py  base: entities are tangent vectors at the origin of a ball with a learned curvature
linear_maps.py       base: MuRE and MuRP with another linear map
transformations.py   how a relation transforms its subject and its object (the paper's Table 2)
biases.py            what is added to minus the squared distance (the paper's Table 2)
complex_numbers.py   rows of real numbers as complex ones
rotations_and_reflections.py  how a relation turns pairs of numbers
normalisation.py     batch normalisation
"""
