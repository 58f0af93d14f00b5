"""Factorization machines as scikit-learn estimators."""

from freqsgd.estimators.classifiers import DeepFMClassifier, FMClassifier

__all__ = ["DeepFMClassifier", "FMClassifier"]
