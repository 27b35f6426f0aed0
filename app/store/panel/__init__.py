"""What the panel reads and decides: overview, review, lineage, people, controls.

Texts leave the database only while their author allows people to review them: the condition is part of each query, so
a view cannot forget it.
"""
