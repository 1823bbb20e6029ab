"""The report in a real browser: Debian's Chromium, driven by Selenium."""

import base64
import csv
import io
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, Ridge

import dsage
from dsage.estimate import StopKind, StopReason
from dsage.report import report_data, write_report
from explanations import make_explanation
from fold_case import table
from report_cases import IMAGE, ODD_NAMES, SCRIPT, synthetic_explanation

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
exceptions = pytest.importorskip("selenium.common.exceptions")
By = pytest.importorskip("selenium.webdriver.common.by").By
ActionChains, Keys = webdriver.ActionChains, webdriver.Keys

BROWSER, DRIVER = Path("/usr/bin/chromium"), Path("/usr/bin/chromedriver")
pytestmark = pytest.mark.skipif(
    not (BROWSER.exists() and DRIVER.exists()), reason="chromium and chromedriver are not installed"
)
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking")
# Encoded pictures may have any letters.
MAIN = """return document.querySelector('main').innerHTML.replace(/base64,[^"]*/g, '')"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    options = webdriver.ChromeOptions()
    options.binary_location = str(BROWSER)
    profile = tmp_path_factory.mktemp("profile")
    for flag in (*FLAGS, f"--user-data-dir={profile}", "--window-size=1280,1000"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(
        options=options, service=webdriver.ChromeService(executable_path=str(DRIVER))
    )
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("reports")


@pytest.fixture(scope="module")
def explanations():
    groups = {"first": ["feature 0", "feature 1"], "last": ["feature 2"]}
    real = make_explanation(5)
    skipping = replace(real, estimate=replace(real.estimate, estimand="d-sage"))
    return {
        "real": skipping,
        "single": make_explanation(1),
        "plain": make_explanation(3, audited=False),
        "groups": make_explanation(3, groups=groups),
        "many": synthetic_explanation(100),
        "odd": synthetic_explanation(names=ODD_NAMES),
        "unknown": synthetic_explanation(
            3,
            se_rows=np.full(3, np.nan),
            values=-np.arange(3.0),
            reason=StopReason(StopKind.INTERRUPTED),
        ),
    }


@pytest.fixture
def show(browser, folder, explanations):
    """Open the report of an explanation of that name."""

    def opened(name, *, width=1280, scheme="light"):
        path = folder / f"{name}.html"
        if not path.exists():
            write_report(explanations[name], path)
        size = {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        # Without smooth scrolling, clicks hit what they aim at.
        wanted = {"prefers-color-scheme": scheme, "prefers-reduced-motion": "reduce"}
        features = [{"name": name, "value": value} for name, value in wanted.items()]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        browser.get_log("browser")
        browser.get_log("performance")
        browser.get(path.as_uri())
        return browser

    return opened


def cells(browser, column):
    rows = "[...document.querySelectorAll('#ranking-table tbody tr')]"
    return browser.execute_script(f"return {rows}.map((row) => row.cells[{column}].innerText)")


def lit(browser, picture):
    found = browser.find_elements(By.CSS_SELECTOR, f"#{picture} .lit[data-feature]")
    return {node.get_attribute("data-feature") for node in found}


@pytest.mark.parametrize("name", ["real", "single", "plain", "groups", "many", "odd", "unknown"])
def test_it_renders_without_errors_or_requests_at_any_width(show, name, tmp_path):
    for width in (1280, 400):
        browser = show(name, width=width)
        assert browser.get_log("browser") == []
        asked = re.findall(r'"url":"(?!data:)([a-z]+:[^"]*)"', str(browser.get_log("performance")))
        assert {address for address in asked if not address.startswith("file:")} <= {"about:blank"}
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        assert "NaN" not in browser.execute_script(MAIN)
        assert browser.find_element(By.CSS_SELECTOR, "#ranking-chart svg[role=img] > title")
        assert browser.save_screenshot(str(tmp_path / f"{name}-{width}.png"))
    headings = [each.text for each in browser.find_elements(By.CSS_SELECTOR, "main h2")]
    assert len(headings) == 11
    assert all(headings)


def test_it_shows_what_the_data_say(show, explanations):
    browser = show("real")
    data = report_data(explanations["real"])
    text = browser.find_element(By.TAG_NAME, "body").text
    told = [*data["headline"], *data["savings"], *data["audit"]["sentences"]]
    told += [caution["text"] for caution in data["cautions"]]
    told += [each["here"] for each in data["assumptions"]]
    shown = " ".join(text.split())
    for sentence in told:
        assert " ".join(sentence.split()) in shown
    assert cells(browser, 0) == [feature["name"] for feature in data["features"]]


def test_columns_sort_by_click_and_by_key_and_tell_so(show):
    browser = show("many")
    header = "#ranking-table thead th:nth-child(1)"
    browser.find_element(By.CSS_SELECTOR, f"{header} button").click()
    names = cells(browser, 0)
    assert names == [f"feature_{number}" for number in range(100)]
    assert browser.find_element(By.CSS_SELECTOR, header).get_attribute("aria-sort") == "ascending"
    # The header that was chosen keeps the focus.
    browser.switch_to.active_element.send_keys(Keys.ENTER)
    assert cells(browser, 0) == names[::-1]
    assert browser.find_element(By.CSS_SELECTOR, header).get_attribute("aria-sort") == "descending"
    browser.find_element(By.CSS_SELECTOR, "#ranking-table thead th:nth-child(2) button").click()
    values = [float(text.replace("\N{MINUS SIGN}", "-")) for text in cells(browser, 1)]
    assert values == sorted(values, reverse=True)
    assert browser.find_element(By.CSS_SELECTOR, header).get_attribute("aria-sort") == "none"


def test_a_feature_pointed_at_is_lit_in_all_pictures_and_explained(show):
    browser = show("real")
    pictures = ("ranking-chart", "savings-chart", "audit-chart", "graph-chart", "convergence-chart")
    row = browser.find_element(By.CSS_SELECTOR, '#ranking-chart [data-feature="2"] text')
    # Scrolling to it hides the tip; the next move of the pointer brings it back.
    ActionChains(browser).move_to_element(row).pause(0.1).move_by_offset(1, 0).perform()
    assert all(lit(browser, picture) == {"2"} for picture in pictures)
    assert lit(browser, "ranking-table") == {"2"}
    assert browser.find_elements(By.CSS_SELECTOR, "#graph-chart .edge.lit")
    tip = browser.find_element(By.ID, "tip")
    assert tip.is_displayed()
    assert "population:" in tip.text
    ActionChains(browser).move_to_element(browser.find_element(By.TAG_NAME, "h1")).perform()
    assert not any(lit(browser, picture) for picture in pictures)
    assert not tip.is_displayed()


def test_a_click_pins_and_escape_releases_also_by_keyboard(show):
    browser = show("real")
    browser.find_element(By.CSS_SELECTOR, '#audit-chart [data-feature="1"] text').click()
    ActionChains(browser).move_to_element(browser.find_element(By.TAG_NAME, "h1")).perform()
    assert lit(browser, "graph-chart") == {"1"}
    pressed = browser.find_elements(By.CSS_SELECTOR, 'button.pick[aria-pressed="true"]')
    assert [button.text for button in pressed] == [
        browser.find_element(By.ID, "pinned").text[:-2].strip()
    ]
    ActionChains(browser).send_keys(Keys.ESCAPE).perform()
    assert lit(browser, "graph-chart") == set()
    button = browser.find_element(By.CSS_SELECTOR, '#ranking-table [data-feature="0"] button')
    headers = browser.find_elements(By.CSS_SELECTOR, "#ranking-table thead button")
    headers[-1].send_keys(Keys.TAB)
    assert browser.switch_to.active_element == button
    assert lit(browser, "convergence-chart") == {"0"}
    button.send_keys(Keys.ENTER)
    assert button.get_attribute("aria-pressed") == "true"


def test_a_long_name_that_is_pinned_fits_a_narrow_screen(show):
    browser = show("odd", width=400)
    last = len(ODD_NAMES) - 1
    browser.find_element(By.CSS_SELECTOR, f'#ranking-chart [data-feature="{last}"] text').click()
    assert browser.find_element(By.CSS_SELECTOR, "#pinned button").text.startswith("aaaa")
    overflow = "const page = document.documentElement; return page.scrollWidth - page.clientWidth"
    assert browser.execute_script(overflow) == 0


def test_a_group_lights_its_members_in_the_graph(show):
    browser = show("groups")
    browser.find_element(By.CSS_SELECTOR, '#ranking-chart [data-feature="0"] text').click()
    name = cells(browser, 0)[0]
    nodes = browser.find_elements(By.CSS_SELECTOR, "#graph-chart .node.lit")
    assert len(nodes) == {"first": 2, "last": 1}[name]


def test_column_names_with_markup_are_text(show):
    browser = show("odd")
    with pytest.raises(exceptions.NoAlertPresentException):
        _ = browser.switch_to.alert.text
    assert {SCRIPT, IMAGE} < set(cells(browser, 0))
    assert browser.find_elements(By.CSS_SELECTOR, "main img, main script") == []
    drawn = browser.execute_script(
        "return [...document.querySelectorAll('#graph-chart .node')].map((node) => node.textContent)"
    )
    assert SCRIPT in drawn
    chart = browser.find_element(By.ID, "ranking-chart")
    assert "a" * 120 in browser.execute_script("return arguments[0].textContent", chart)


def test_the_filter_finds_features_and_more_can_be_shown(show):
    browser = show("many")
    rows = "#ranking-chart g.feature"
    assert len(browser.find_elements(By.CSS_SELECTOR, rows)) == 25
    browser.find_element(By.CSS_SELECTOR, "#ranking-chart button.more").click()
    assert len(browser.find_elements(By.CSS_SELECTOR, rows)) == 100
    field = browser.find_element(By.ID, "filter")
    field.send_keys("FEATURE_9")
    wanted = {"feature_9", *(f"feature_9{digit}" for digit in range(10))}
    assert set(cells(browser, 0)) == wanted
    assert len(browser.find_elements(By.CSS_SELECTOR, rows)) == len(wanted)
    assert len(browser.find_elements(By.CSS_SELECTOR, "#audit-table tbody tr")) == len(wanted)
    field.send_keys("nothing")
    assert browser.find_element(By.ID, "ranking-chart").text == "No feature matches."
    assert browser.get_log("browser") == []
    assert not show("real").find_element(By.ID, "filter").is_displayed()


def test_the_table_is_copied_as_csv(show, explanations):
    browser = show("real")
    catch = "window.copied = null; document.addEventListener('copy', () => { window.copied = "
    catch += "document.activeElement.value; });"
    catch += "Object.defineProperty(navigator, 'clipboard', { value: undefined });"
    browser.execute_script(catch)
    browser.find_element(By.ID, "copy").click()
    status = browser.find_element(By.ID, "copied")
    assert status.text == "Copied 5 features."
    lines = list(csv.reader(io.StringIO(browser.execute_script("return window.copied"))))
    frame = explanations["real"].to_frame()
    assert lines[0] == list(frame.columns)
    assert [line[0] for line in lines[1:]] == list(frame["feature"])


def test_dark_and_light_differ_and_print_is_light_with_pages(show, tmp_path):
    ground = "return getComputedStyle(document.body).backgroundColor"
    light = show("real").execute_script(ground)
    browser = show("real", scheme="dark")
    dark = browser.execute_script(ground)
    assert sum(map(int, re.findall(r"\d+", light)[:3])) > 600
    assert sum(map(int, re.findall(r"\d+", dark)[:3])) < 150
    # Dark on white, whatever the screen is; no buttons.
    on_dark = [{"name": "prefers-color-scheme", "value": "dark"}]
    media = {"media": "print", "features": on_dark}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    assert sum(map(int, re.findall(r"\d+", browser.execute_script(ground))[:3])) == 3 * 255
    ink = browser.execute_script("return getComputedStyle(document.body).color")
    assert sum(map(int, re.findall(r"\d+", ink)[:3])) < 150
    assert not browser.find_element(By.ID, "copy").is_displayed()
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    printed = browser.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})
    pdf = base64.b64decode(printed["data"])
    (tmp_path / "report.pdf").write_bytes(pdf)
    assert pdf.startswith(b"%PDF")
    assert 3 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 12
    assert browser.get_log("browser") == []
    width = "return document.querySelector('#ranking-chart .picture svg').viewBox.baseVal.width"
    assert browser.execute_script(width) > 800  # as before it was printed


def test_the_report_of_a_comparison_renders_without_errors(browser, folder):
    X, y = table()
    models = {"plain": LinearRegression().fit(X, y), SCRIPT: Ridge(60.0).fit(X, y)}
    quick = {"sampler": "gaussian", "random_state": 0, "progress": False}
    found = dsage.compare(models, X, y, *table(40, seed=1), **quick)
    browser.get_log("browser")
    browser.get(found.report(folder / "comparison.html").as_uri())
    assert browser.get_log("browser") == []
    for chart in ("#difference-0", "#values-chart"):
        assert browser.find_element(By.CSS_SELECTOR, f"{chart} svg[role=img] > title")
    assert len(browser.find_elements(By.CSS_SELECTOR, "#differences-table tbody tr")) == 3
    assert "NaN" not in browser.execute_script(MAIN)


def test_the_report_of_a_flow_renders_without_errors(browser, folder):
    X, y = table()
    graph = dsage.Graph([*X.columns, SCRIPT], [(X.columns[0], X.columns[1])])
    options = {"n_orderings": 1, "random_state": 0, "progress": False}
    model = LinearRegression().fit(X, y)
    found = dsage.explain_flow(
        model, X, y, *table(40, seed=1), graph=graph, target=SCRIPT, **options
    )
    browser.get_log("browser")
    browser.get(found.report(folder / "flow.html").as_uri())
    assert browser.get_log("browser") == []
    assert browser.execute_script("return document.querySelector('#edges img').naturalWidth") > 0
    n_lines = len(browser.find_elements(By.CSS_SELECTOR, "#edges-table tbody tr"))
    assert n_lines == len(found.edges)
    assert "NaN" not in browser.execute_script(MAIN)
