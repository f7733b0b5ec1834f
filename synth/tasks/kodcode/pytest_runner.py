"""Runs in the sandbox: pytest on tests that need it (fixtures, parameters, marks, raises, classes), as runner.py reports."""
import json
import os
import re
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))


def main():
    report = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)

    def say(**record):
        report.write(json.dumps(record) + "\n")
        report.flush()

    try:
        import pytest
    except ModuleNotFoundError as error:
        say(missing=str(error.name))
        return

    class Reporter:
        def pytest_collectreport(self, report):
            if not report.failed:
                return
            text = str(report.longrepr)
            missing = re.search(r"ModuleNotFoundError: No module named '([^']+)'", text)
            say(**({"missing": missing[1]} if missing else {"fault": last_line(text)}))

        def pytest_collection_finish(self, session):
            say(tests=len(session.items))

        def pytest_runtest_logreport(self, report):
            name = report.nodeid.split("::", 1)[-1]
            # An expected failure is what the test wants; any other skip has tested nothing.
            expected = hasattr(report, "wasxfail")
            if report.failed:
                say(failed=name, why=why(report))
            elif report.skipped and not expected:
                say(failed=name, why="was skipped")
            elif report.when == "call" or (report.skipped and expected):
                say(passed=name)

    sys.path.insert(0, FOLDER)
    options = ["-q", "-c", "/dev/null", "--rootdir=/tmp", "-p", "no:cacheprovider"]
    pytest.main([*options, os.path.join(FOLDER, "test_solution.py")], plugins=[Reporter()])


def why(report):
    crash = getattr(report.longrepr, "reprcrash", None)
    return last_line(str(report.longrepr)) if crash is None else str(crash.message).split("\n")[0][:200]


def last_line(text):
    lines = [line.strip() for line in text.strip().split("\n") if line.strip()]
    raised = [line[1:].strip() for line in lines if line.startswith("E ")]
    return ((raised or lines or [""])[-1])[:200]


main()
