#!/usr/bin/env python3
"""Makes data/math/problems.jsonl: templated problems in the layout of MATH (problem, level, type, solution, answer).

    python3 scripts/data/math.py data/math/problems.jsonl

Answers are exact (integers and fractions); each is worked out twice, by formula and by another way, and must agree. Problems
whose solution is a chain of arithmetic carry it in `calculations`, for the simulator.
"""
import json
import random
import sys
from fractions import Fraction
from math import gcd, isqrt

SEED = 20
PER_TEMPLATE = 20


def latex(value):
    value = Fraction(value)
    if value.denominator == 1:
        return str(value.numerator)
    return f"{'-' if value < 0 else ''}\\frac{{{abs(value.numerator)}}}{{{value.denominator}}}"


def terms(*parts):
    """a polynomial from (coefficient, symbol)"""
    text = ""
    for coefficient, symbol in parts:
        if coefficient == 0:
            continue
        size = "" if abs(coefficient) == 1 and symbol else str(abs(coefficient))
        text += ("-" if coefficient < 0 else "+" if text else "") + size + symbol
    return text or "0"


def sequence(r):
    first, step, n = r.randint(2, 40), r.randint(3, 15), r.randint(8, 40)
    values = [first]
    while len(values) < n:
        values.append(values[-1] + step)
    answer = first + (n - 1) * step
    assert answer == values[-1]
    return ("Algebra", f"The first term of an arithmetic sequence is ${first}$ and its common difference is ${step}$. What is the ${n}$th term?",
            answer, [f"{n} - 1", f"previous * {step}", f"previous + {first}"])


def geometric(r):
    first, ratio, n = r.randint(2, 9), r.randint(2, 5), r.randint(3, 5)
    value = first
    for _ in range(n - 1):
        value *= ratio
    assert value == first * ratio ** (n - 1)
    chain = [f"{first} * {ratio}"] + [f"previous * {ratio}"] * (n - 2)
    return ("Algebra", f"A geometric sequence starts with ${first}$ and has the ratio ${ratio}$. What is its ${n}$th term?", value, chain)


def linear(r):
    a, b, c = r.choice([2, 4, 5, 8]), r.randint(3, 30), r.randint(31, 99)
    answer = Fraction(c - b, a)
    assert a * answer + b == c
    return ("Algebra", f"Solve for $x$: ${a}x + {b} = {c}$.", answer, [f"{c} - {b}", f"previous / {a}"])


def average(r):
    values = [r.randint(5, 60) for _ in range(4)]
    answer = Fraction(sum(values), 4)
    assert sum(value - answer for value in values) == 0
    chain = [f"{values[0]} + {values[1]}", f"previous + {values[2]}", f"previous + {values[3]}", "previous / 4"]
    return ("Prealgebra", f"What is the average of ${values[0]}$, ${values[1]}$, ${values[2]}$ and ${values[3]}$?", answer, chain)


def fraction(r):
    b = r.choice([4, 5, 8])
    a, c, d = r.randint(1, b - 1), r.randint(3, 12), r.randint(1, 9)
    answer = Fraction(a, b) * c - d
    assert (answer + d) * b == a * c
    return ("Prealgebra", f"Compute $\\frac{{{a}}}{{{b}}} \\cdot {c} - {d}$ and give the result as a common fraction or whole number.",
            answer, [f"{a} / {b}", f"previous * {c}", f"previous - {d}"])


def triangle(r):
    base, height, cut = r.randint(5, 25), r.randint(5, 25), r.randint(2, 4)
    answer = Fraction(base * height, 2) - cut * cut
    assert 2 * (answer + cut * cut) == base * height
    return ("Geometry", f"A square of side ${cut}$ is cut out of a triangle of base ${base}$ and height ${height}$. What area is left?",
            answer, [f"{base} * {height}", "previous / 2", f"previous - {cut * cut}"])


def surd(r):
    while True:
        b, c = r.randint(1, 9), -r.randint(1, 9)
        square = b * b - 4 * c
        if isqrt(square) ** 2 != square:
            break
    # the larger root p + sqrt(q) of x^2 + bx + c: its sum with the conjugate is -b, its product with it c
    p, q = Fraction(-b, 2), Fraction(square, 4)
    assert 2 * p == -b and p * p - q == c
    return ("Intermediate Algebra", f"What is the larger root of ${terms((1, 'x^2'), (b, 'x'), (c, ''))}$?", f"\\frac{{{-b}+\\sqrt{{{square}}}}}{{2}}", None)


def expand(r):
    a, b = r.randint(-9, 9) or 1, r.randint(1, 9)
    for x in range(-3, 4):
        assert (x + a) * (x + b) == x * x + (a + b) * x + a * b
    return ("Algebra", f"Expand $(x {'+' if a > 0 else '-'} {abs(a)})(x + {b})$.", terms((1, "x^2"), (a + b, "x"), (a * b, "")), None)


def midpoint(r):
    x1, y1, x2, y2 = (r.randint(-9, 9) for _ in range(4))
    x, y = Fraction(x1 + x2, 2), Fraction(y1 + y2, 2)
    assert (x - x1, y - y1) == (x2 - x, y2 - y)
    return ("Geometry", f"What is the midpoint of $({x1},{y1})$ and $({x2},{y2})$?", f"\\left({latex(x)},{latex(y)}\\right)", None)


def interval(r):
    a, b, c = r.randint(2, 6), r.randint(1, 9), r.randint(10, 30)
    bound = Fraction(c - b, a)
    assert a * bound + b == c
    return ("Intermediate Algebra", f"For which $x$ is ${a}x + {b} < {c}$? Answer in interval notation.", f"(-\\infty,{latex(bound)})", None)


def product(r):
    a, b, c, d = (r.randint(1, 9) for _ in range(4))
    number = complex(a, b) * complex(c, d)
    assert (a * c - b * d, a * d + b * c) == (round(number.real), round(number.imag))
    return ("Intermediate Algebra", f"Compute $({a} + {b}i)({c} + {d}i)$.", terms((a * c - b * d, ""), (a * d + b * c, "i")), None)


def divisors(r):
    number = r.choice([n for n in range(24, 200) if gcd(n, 6) == 6])
    found = [n for n in range(1, 13) if number % n == 0]
    assert all(number // n * n == number for n in found)
    return ("Number Theory", f"Which of the numbers from $1$ to $12$ divide ${number}$? List them.", ",".join(map(str, found)), None)


TEMPLATES = [sequence, geometric, linear, average, fraction, triangle, surd, expand, midpoint, interval, product, divisors]


def main(target):
    with open(target, "w") as out:
        for template in TEMPLATES:
            draws, seen = random.Random(f"{SEED} {template.__name__}"), set()
            while len(seen) < PER_TEMPLATE:
                kind, problem, answer, chain = template(draws)
                if problem in seen:
                    continue
                seen.add(problem)
                shown = answer if isinstance(answer, str) else latex(answer)
                worked = f"The result is $\\boxed{{{shown}}}$."
                record = {"id": f"{template.__name__}-{len(seen):02}", "problem": problem, "level": "Level 1", "type": kind,
                          "solution": worked, "answer": shown}
                if chain is not None:
                    record["calculations"] = chain
                out.write(json.dumps(record) + "\n")


main(*sys.argv[1:])
