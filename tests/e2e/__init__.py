"""The learner with the real model: trainings and the whole road."""
