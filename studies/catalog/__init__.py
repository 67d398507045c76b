"""Every study by name, in the order in which they are told."""

from studies.catalog import ablations, faults, incast, load, paths
from studies.golden import GOLDEN
from studies.study import Study

COMPARISONS: tuple[Study, ...] = (*load.STUDIES, *incast.STUDIES, *paths.STUDIES, *faults.STUDIES)
ABLATIONS: tuple[Study, ...] = ablations.STUDIES
STUDIES: dict[str, Study] = {study.name: study for study in (GOLDEN, *COMPARISONS, *ABLATIONS)}
