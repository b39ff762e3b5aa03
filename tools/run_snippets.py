"""Compile and run the C++ and JavaScript blocks of docs/export.md, and compare their answers with Python's.

C++ needs g++, the headers of onnxruntime and its library (Debian's libonnxruntime-dev has both); JavaScript needs node
and a folder where `npm install onnxruntime-web` has run:

python tools/run_snippets.py --headers /usr/include/onnxruntime --library /usr/lib/libonnxruntime.so
python tools/run_snippets.py --modules FOLDER/node_modules --package onnxruntime-web
"""

import argparse
import re
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import onnxruntime

import srno
from srno.export.export import GraphPrecision, save_onnx

PAGE = Path(__file__).parents[1] / "docs" / "export.md"
LR, HR = (40, 33), (97, 121)
ALLOWED: dict[GraphPrecision, float] = {"fp32": 1e-5, "fp16": 1e-3}
"""Largest difference between two runtimes, range [0, 1]."""

CPP_MAIN = f"""
#include <fstream>
int main() {{
  Ort::Env env;
  Ort::Session session(env, "light.onnx", Ort::SessionOptions{{}});
  std::vector<float> rgb(3 * {LR[0]} * {LR[1]});
  std::ifstream("in.raw", std::ios::binary).read(reinterpret_cast<char*>(rgb.data()), 4 * rgb.size());
  auto large = enlarge(session, rgb, {LR[0]}, {LR[1]}, {HR[0]}, {HR[1]});
  std::ofstream("out.raw", std::ios::binary).write(reinterpret_cast<const char*>(large.data()), 4 * large.size());
}}
"""
JS_MAIN = f"""
import fs from "fs";
import {{ enlarge }} from "./enlarge.mjs";
const bytes = fs.readFileSync("in.raw");
const rgb = new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
const large = await enlarge(rgb, {LR[0]}, {LR[1]}, {HR[0]}, {HR[1]});
fs.writeFileSync("out.raw", Buffer.from(large.buffer, large.byteOffset, large.byteLength));
"""


def block(language: str) -> str:
    """The only block of the page in this language."""
    (text,) = re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return text


def run_cpp(folder: Path, headers: Path, library: Path) -> None:
    """Build the block as it is and run it, then once more with our picture instead of its grey one."""
    for name, text in (("page", block("cpp")), ("ours", block("cpp").split("int main()")[0] + CPP_MAIN)):
        (folder / f"{name}.cpp").write_text(text)
        flags = ("-std=c++17", "-Wall", "-Wextra", "-Werror", f"-I{headers}", f"-Wl,-rpath,{library.parent}")
        subprocess.run(["g++", *flags, f"{name}.cpp", "-o", name, library], cwd=folder, check=True)
        subprocess.run([folder / name], cwd=folder, check=True)


def run_js(folder: Path, modules: Path, package: str) -> None:
    """Run the block as a module; onnxruntime-node has the same interface as onnxruntime-web."""
    (folder / "node_modules").symlink_to(modules.resolve())
    (folder / "enlarge.mjs").write_text(block("js").replace("onnxruntime-web", package))
    (folder / "main.mjs").write_text(JS_MAIN)
    subprocess.run(["node", "main.mjs"], cwd=folder, check=True)


def check(arguments: argparse.Namespace, precision: GraphPrecision, folder: Path) -> None:
    """Write light.onnx and a picture into the folder, run the block there and print the difference."""
    save_onnx(srno.load("light"), folder / "light.onnx", precision=precision)
    image = np.random.default_rng(0).random((1, 3, *LR), np.float32)
    image.tofile(folder / "in.raw")
    if arguments.headers:
        run_cpp(folder, arguments.headers, arguments.library.resolve())
    else:
        run_js(folder, arguments.modules, arguments.package)
    session = onnxruntime.InferenceSession(folder / "light.onnx")
    (expected,) = session.run(None, {"image": image, "size": np.array(HR)})
    found = np.fromfile(folder / "out.raw", np.float32).reshape(1, 3, *HR)
    difference = float(np.abs(found - np.asarray(expected)).max())
    print(f"{precision}: largest difference to Python {difference:.1e}")
    assert difference < ALLOWED[precision]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--headers", type=Path, help="folder of onnxruntime_cxx_api.h")
    parser.add_argument("--library", type=Path, help="libonnxruntime.so")
    parser.add_argument("--modules", type=Path, help="node_modules with onnxruntime-web")
    parser.add_argument("--package", default="onnxruntime-web", help="or onnxruntime-node")
    arguments = parser.parse_args()
    if not ((arguments.headers and arguments.library) or arguments.modules):
        parser.error("give --headers and --library, or --modules")
    for precision in ALLOWED:
        with tempfile.TemporaryDirectory() as folder:
            check(arguments, precision, Path(folder))


if __name__ == "__main__":
    main()
