"""Thumbnails of follow-ups: the same whatever is kept, rendered once, within a bound."""

import numpy as np
import pandas as pd

from adaptive_vtt.datasets import from_table
from adaptive_vtt.engine.proxies import Renderings
from adaptive_vtt.space import QuestionSpace

IMAGES = np.random.default_rng(0).integers(0, 256, (6, 40, 20, 3), dtype=np.uint8)
RELATIONS = ["identity", "gaussian_noise"]


def space(images=IMAGES, **options) -> QuestionSpace:
    table = from_table(images, pd.DataFrame({"a": [1, 0] * 3}))
    return QuestionSpace(table, RELATIONS, severities=[3], **options)


def counted(space: QuestionSpace) -> list[int]:
    """The follow-ups rendered from now on."""
    rendered: list[int] = []
    plain = space.made_of
    space.made_of = lambda of, image: rendered.append(image) or plain(of, image)
    return rendered


def test_follow_ups_are_rendered_once_and_given_in_the_order_asked_for():
    here = space()
    rendered = counted(here)
    found = Renderings(here, side=8)
    first = found.thumbnails(np.array([3, 1, 3]))
    assert found.shape == (8, 8, 3)
    assert first.shape == (3, 8 * 8 * 3)
    assert first.dtype == np.uint8
    np.testing.assert_array_equal(first[0], first[2])
    again = found.thumbnails(np.array([1, 3, 5]))
    np.testing.assert_array_equal(again[:2], first[[1, 0]])
    assert sorted(rendered) == [1, 3, 5]


def test_a_source_image_is_read_once_for_all_of_its_follow_ups():
    here, read = space(), []
    plain = here.dataset.sample
    here.dataset.sample = lambda place: read.append(place) or plain(place)
    Renderings(here, side=8).thumbnails(np.array([2, 3, 7, 6]))
    assert read == [0, 1, 3]  # the first gives thumbnails their shape


def test_small_images_keep_their_pixels_and_grey_stays_grey():
    grey = IMAGES[:, :, :, :1]
    found = Renderings(space(grey), side=64)
    assert found.shape == (40, 20, 1)
    np.testing.assert_array_equal(found.thumbnails(np.array([0]))[0].reshape(found.shape), grey[0])


def test_the_least_recently_used_make_room_and_come_out_the_same():
    here = space()
    rendered = counted(here)
    found = Renderings(here, side=4, limit_bytes=3 * 4 * 4 * 3 + 1)  # room for three
    everything = Renderings(space(), side=4).thumbnails(np.arange(12))
    for asked in ([0, 1, 2], [0], [3], [0, 2]):
        np.testing.assert_array_equal(found.thumbnails(np.array(asked)), everything[asked])
    assert rendered == [0, 1, 2, 3]  # 1 made room for 3
    np.testing.assert_array_equal(found.thumbnails(np.array([1])), everything[[1]])
    assert rendered == [0, 1, 2, 3, 1]
    np.testing.assert_array_equal(found.thumbnails(np.arange(12)[::-1]), everything[::-1])
