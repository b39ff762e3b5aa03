"""The page in a real browser: the panel that shows what the operator computes."""

import re

import pytest
from browsing import PHONE, SIZE
from serving import picture

pytestmark = pytest.mark.browser

FIRST_MAP = "document.querySelector('.map canvas').toDataURL()"


def test_the_panel_follows_the_window_and_the_pointer_and_costs_nothing_while_closed(visit):
    visitor = visit()
    page = visitor.page
    visitor.open(picture(*SIZE))
    assert not any("/inside" in url for url in visitor.requests)
    page.keyboard.press("i")
    page.locator("#maps section").nth(5).wait_for()
    kinds = page.evaluate("[...document.querySelectorAll('#maps section')].map((one) => one.dataset.kind)")
    assert kinds == ["features", "z", "k", "v", "m", "z"]  # the model has one layer
    assert page.locator("#maps .map").count() == 5 * 4
    assert page.locator("#maps section > p").count() == 6  # one sentence each
    visitor.sharp()
    page.mouse.move(400, 200)
    values = page.locator("#maps output")
    visitor.until(lambda: bool(re.fullmatch(r"-?\d+\.\d\d", values.first.text_content())))
    before = page.evaluate(FIRST_MAP)
    with visitor.moving():
        page.mouse.wheel(0, -400)
    visitor.until(lambda: page.evaluate(FIRST_MAP) != before)  # the maps of another window
    page.get_by_role("button", name="Close this panel").click()
    visitor.sharp()
    asked = len([url for url in visitor.requests if "/inside" in url])
    with visitor.moving():
        page.keyboard.press("+")
    assert len([url for url in visitor.requests if "/inside" in url]) == asked


def test_below_x1_the_panel_says_that_nothing_is_enlarged(visit):
    visitor = visit(viewport={"width": 500, "height": 300})
    visitor.open(picture(320, 240, "L"))
    visitor.page.keyboard.press("i")
    visitor.page.get_by_text("Below ×1 nothing is enlarged").wait_for()


def test_on_a_phone_the_panel_is_under_the_picture(visit):
    visitor = visit(**PHONE)
    visitor.open(picture(*SIZE))
    visitor.page.get_by_role("button", name="Inside the operator").click()
    visitor.page.locator("#maps section").nth(5).wait_for()
    stage, panel = (visitor.page.locator(name).bounding_box() for name in ("#stage", "#inside"))
    assert panel["width"] == stage["width"] == 375
    assert panel["y"] >= stage["y"] + stage["height"] - 1


def test_on_a_phone_on_its_side_the_panel_is_beside_the_picture(visit):
    visitor = visit(**{**PHONE, "viewport": {"width": 812, "height": 375}})
    visitor.open(picture(*SIZE))
    visitor.page.get_by_role("button", name="Inside the operator").click()
    visitor.page.locator("#maps section").nth(5).wait_for()
    stage, panel = (visitor.page.locator(name).bounding_box() for name in ("#stage", "#inside"))
    assert panel["height"] == stage["height"] > 300
    assert stage["width"] > 400
    assert panel["x"] >= stage["x"] + stage["width"] - 1
