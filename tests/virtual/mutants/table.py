"""All mutants, by name."""

from __future__ import annotations

from tests.virtual.mutants.absences import ABSENCES
from tests.virtual.mutants.directories import DIRECTORIES
from tests.virtual.mutants.elastic import ELASTIC
from tests.virtual.mutants.layouts import LAYOUTS
from tests.virtual.mutants.moving import MOVING
from tests.virtual.mutants.readers import READERS
from tests.virtual.mutants.sca import SCAS
from tests.virtual.mutants.serving import SERVING
from tests.virtual.mutants.trust import TRUST

MUTANTS = {
    **SERVING,
    **TRUST,
    **READERS,
    **ABSENCES,
    **MOVING,
    **LAYOUTS,
    **ELASTIC,
    **SCAS,
    **DIRECTORIES,
}
