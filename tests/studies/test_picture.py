"""Pictures are well-formed, escaped and the same every time."""

from xml.etree import ElementTree

from studies.catalog import STUDIES
from studies.picture import bars, timeline
from studies.results import Results


def test_bars_have_one_row_per_variant() -> None:
    study = STUDIES["permutation"]
    results = Results("permutation", 2, {"a & b": {study.pictured: [0.5, 1.0]}, "<c>": {study.pictured: [0.25, None]}})
    picture = bars(study, results)
    rectangles = ElementTree.fromstring(picture).findall("{http://www.w3.org/2000/svg}rect")
    assert [float(shape.attrib["width"]) for shape in rectangles] == [352.5, 58.8]
    assert picture == bars(study, results)


def test_a_timeline_has_one_line_per_variant() -> None:
    results = Results("dead_t1", 1, {}, {"MRC": [0, 100, 100, 50], "oblivious": [0, 100]})
    root = ElementTree.fromstring(timeline(STUDIES["dead_t1"], results, 5_000, 10_000))
    assert len(root.findall("{http://www.w3.org/2000/svg}polyline")) == 2
