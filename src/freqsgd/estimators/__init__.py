"""What the scikit-learn estimators are made of; :mod:`freqsgd.sklearn` has them."""
