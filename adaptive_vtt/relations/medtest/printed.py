"""Text that a device printed upon the picture: thin bright letters in straight lines."""

import cv2
import numpy as np
import numpy.typing as npt

from ...types import Image, Mask

STROKE = 0.014
"""Letters' strokes are narrower than this, as a share of the shorter side."""

CONTRAST, BRIGHT = 60, 140
"""Grey levels by which the green channel of a stroke is above what lies around it, and which it
reaches: devices print in white, green and yellow, and tissue is red."""

HEIGHT = (0.008, 0.06)
"""Heights of letters, as shares of the shorter side."""

GAP = 0.8
"""Largest distance between letters of a line, in heights of a line."""

LETTERS = 4
"""Fewest letters of a line: highlights come in ones and twos, and seldom in a row."""

Levels = npt.NDArray[np.uint8]


def printed(image: Image) -> Mask:
    """Where text is printed upon H x W x 3 RGB, H x W; the edges of letters belong to it."""
    side = min(image.shape[:2])
    green = np.ascontiguousarray(image[:, :, 1])
    stroke = 2 * max(1, round(STROKE * side / 2)) + 1
    thin = cv2.morphologyEx(green, cv2.MORPH_TOPHAT, np.ones((stroke, stroke), np.uint8))
    marks = ((thin > CONTRAST) & (green > BRIGHT)).view(np.uint8)
    letters = _of_height(marks, HEIGHT[0] * side, HEIGHT[1] * side)
    if not letters.any():
        return letters.view(np.bool_)
    found = _in_lines(letters)
    # colons and points between them, too
    found = marks & cv2.dilate(found, np.ones((1, 2 * stroke + 1), np.uint8))
    return cv2.dilate(found, np.ones((3, 3), np.uint8)).view(np.bool_)


def _of_height(marks: Levels, least: float, most: float) -> Levels:
    """The connected marks that may be letters."""
    _, labels, stats, _ = cv2.connectedComponentsWithStats(marks, connectivity=8)
    height, width = stats[:, cv2.CC_STAT_HEIGHT], stats[:, cv2.CC_STAT_WIDTH]
    fits = (height >= max(3.0, least)) & (height <= most) & (width <= 2 * most)
    fits[0] = False
    if np.count_nonzero(fits) < LETTERS:
        return np.zeros_like(marks)
    return fits.view(np.uint8)[labels]


def _in_lines(letters: Levels) -> Levels:
    """Those letters that stand in a row: as many as a line has, all of about its height."""
    _, labels, stats, centres = cv2.connectedComponentsWithStats(letters, connectivity=8)
    height = stats[:, cv2.CC_STAT_HEIGHT]
    reach = max(1, round(GAP * float(np.median(height[1:]))))
    joined = cv2.dilate(letters, np.ones((1, 2 * reach + 1), np.uint8))
    _, lines = cv2.connectedComponents(joined, connectivity=8)
    line_of = np.full(len(stats), -1)  # of the ground, none
    inside = labels > 0
    line_of[labels[inside]] = lines[inside]  # all pixels of a letter are of one line
    keep = np.zeros(len(stats), np.uint8)
    for line in set(line_of[1:].tolist()):
        members = np.flatnonzero(line_of == line)
        level = np.ptp(centres[members, 1]) <= 0.6 * height[members].max()
        keep[members] = len(members) >= LETTERS and level
    return keep[labels]
