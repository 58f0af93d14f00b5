"""The paper's theory as running code: token distributions, bounds, improvements over SGD, tails.

Names follow the paper: ``p`` are the frequencies of all tokens X = U and V, users and items, so
they sum to 2; ``sigma2`` their conditional variances (Assumption 1); ``L`` the smoothness of the
loss (Assumption 2); ``gap`` is f(Theta^0) - f*; ``T`` the number of iterations.
"""
