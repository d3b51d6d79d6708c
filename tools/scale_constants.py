"""What the plan of docs/scale.md takes from others, each with its source: hardware, prices, graphs, published times.

Nothing of this was measured here. What has no source is an ``assumption`` and says so on the page.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Source:
    """Who says so, where, and in which year; None where it does not say when."""

    title: str
    url: str
    year: int | None = None

    def __str__(self) -> str:
        return f"[{self.title}]({self.url}), {self.year or 'no date'}"


@dataclass(frozen=True)
class Constant:
    """A number that was not measured here; ``source`` None is an assumption of ours, and ``why`` says why it is so."""

    what: str
    value: float
    shown: str
    source: Source | None
    why: str = ""

    def cells(self) -> list[str]:
        """A row of the page: what, value, source."""
        said = str(self.source) if self.source else "**assumption**"
        return [self.what, self.shown, f"{said}; {self.why}" if self.why else said]


MLPERF = Source(
    "NVIDIA's H200 machine in MLPerf Inference 4.1",
    "https://github.com/mlcommons/inference_results_v4.1/blob/main/closed/NVIDIA/systems/H200-SXM-141GBx8_TRT_MaxQ.json",
    2024,
)
BASEPOD = Source(
    "NVIDIA DGX BasePOD, core components",
    "https://docs.nvidia.com/dgx-basepod/reference-architecture-infrastructure-foundation-enterprise-ai/latest/core-components.html",
)
NCCL = Source("NVIDIA/nccl, issue 1264", "https://github.com/NVIDIA/nccl/issues/1264")
MEMORY = Source(
    "OpenMetal, How the H200 is built for memory-bound workloads",
    "https://openmetal.io/resources/blog/how-the-h200-is-built-for-memory-bound-ai-workloads/",
)
PCIE = Source(
    "PCI-SIG's announcement of PCIe 5.0", "https://firmwaresecurity.com/2019/05/31/pcie-5-0-spec-released/", 2019
)
LATENCY = Source(
    "Fridays with Faraday, NVIDIA Dynamo network optimization",
    "https://fridayswithfaraday.com/posts/nvidia-dynamo-network-optimization",
)
PRICES = Source(
    "Amazon EC2 Capacity Blocks for ML, pricing", "https://aws.amazon.com/ec2/capacityblocks/pricing/", 2024
)
DGL_KE = Source("DGL-KE, benchmarks", "https://github.com/awslabs/dgl-ke/blob/master/docs/source/benchmarks.rst", 2020)
OGB = Source("OGB-LSC, WikiKG90Mv2", "https://ogb.stanford.edu/docs/lsc/wikikg90mv2/", 2021)
WIKIDATA = Source(
    "Wikimedia Deutschland, Wikidata exceeds 100 million entries",
    "https://blog.wikimedia.de/2022/10/25/wikidata-100-million-entries/",
    2022,
)
DIST_KGE = Source(
    "Dist-KGE, results (Kochsiek and Gemulla, PVLDB 15)",
    "https://github.com/uma-pi1/dist-kge#results-and-configurations",
    2021,
)
MARIUS = Source("Mohoney et al., Marius, OSDI", "https://arxiv.org/abs/2101.08358", 2021)
BIGGRAPH = Source(
    "PyTorch-BigGraph, pre-trained embeddings",
    "https://github.com/facebookresearch/PyTorch-BigGraph#pre-trained-embeddings",
    2019,
)
GRAPHVITE = Source("GraphVite, README", "https://github.com/DeepGraphLearning/graphvite", 2019)

BUS, NETWORK, ETHERNET, HBM, CACHE, HOST, MESSAGE, PRICE, EPOCHS = CONSTANTS = (
    Constant("between GPUs of a machine (NVLink 4), each way", 450e9, "450 GB/s", MLPERF,
             f"900 GB/s both ways; a copy between two H100 reached 380 ({NCCL})"),
    Constant("between machines (InfiniBand NDR), each way, a GPU", 50e9, "50 GB/s", BASEPOD,
             "8 ports of 400 Gb/s for 8 GPUs"),
    Constant("between machines (Ethernet), each way, a GPU", 100e9 / 8 / 8, "1.56 GB/s", BASEPOD,
             "one port of 100 Gb/s, which 8 GPUs share"),
    Constant("memory of a GPU", 4.8e12, "4.8 TB/s, 141 GB", MEMORY),
    Constant("second cache of a GPU", 50e6, "50 MB", None, "a table that fits into it is read faster"),
    Constant("host memory to a GPU (PCIe 5, 16 lanes), each way", 64e9, "64 GB/s", PCIE,
             "128 GB/s both ways; the formula uses the measured speed of large copies instead"),
    Constant("start of a message to one other GPU", 2e-6, "2 µs", LATENCY,
             "1 µs in a machine, 2 µs in a rack, 5 µs between racks; from a blog; no vendor publishes a number"),
    Constant("price of an H200", 5.408, "5.41 $ an hour", PRICES,
             "Ohio, end of 2024, 8 GPUs reserved as a block; seen in a copy of that page"),
    Constant("epochs of a whole run", 10, "10", None, "others train for about as many on graphs of this size"),
)  # fmt: skip


@dataclass(frozen=True)
class Graph:
    """How large a graph is."""

    entities: int
    relations: int
    facts: int


FREEBASE = Graph(86_054_151, 14_824, 338_586_276)
WIKIKG90M = Graph(91_230_610, 1_387, 601_062_811)
GRAPHS = {
    "Freebase": FREEBASE,
    "Wikidata": Graph(100_000_000, WIKIKG90M.relations, round(WIKIKG90M.facts * 100_000_000 / WIKIKG90M.entities)),
}
WN18RR = Graph(40_943, 11, 86_835)
SIZES = (
    ("Freebase86m", FREEBASE, f"{DGL_KE}"),
    ("WikiKG90Mv2, from Wikidata", WIKIKG90M, f"{OGB}"),
    ("Wikidata, as planned for", GRAPHS["Wikidata"],
     f"more than 100 million items ({WIKIDATA}); facts: **assumption**, as many per entity as in WikiKG90Mv2"),
)  # fmt: skip


@dataclass(frozen=True)
class Published:
    """A training that others have measured; seconds of an ``epoch`` or of a whole ``run``."""

    graph: str
    what: str
    on: str
    gpus: int
    source: Source
    epoch: float | None = None
    run: float | None = None
    remark: str = ""


PUBLISHED = (
    Published("Freebase", "Dist-KGE, ComplEx d=128", "1 GPU, table in main memory", 1, DIST_KGE, epoch=3929.0),
    Published("Freebase", "Dist-KGE, ComplEx d=128", "2 machines with 2 GPUs each", 4, DIST_KGE, epoch=966.7,
              remark="233 GB sent an epoch"),
    Published("Freebase", "Dist-KGE, ComplEx d=128", "2 machines with 4 GPUs each", 8, DIST_KGE, epoch=591.6,
              remark="252 GB sent an epoch"),
    Published("Freebase", "Marius, d=100", "1 V100, partitions on disk", 1, MARIUS, epoch=774.0,
              remark="taken from the paper, not checked again"),
    Published("Freebase", "DGL-KE, TransE", "8 V100", 8, DGL_KE, run=4767.0),
    Published("Freebase", "DGL-KE, ComplEx", "8 V100", 8, DGL_KE, run=8356.0),
    Published("Freebase", "DGL-KE, ComplEx", "4 machines of 48 cores", 0, DGL_KE, run=2293.0),
    Published("Wikidata", "PyTorch-BigGraph, 78 million entities, d=200", "not said", 0, BIGGRAPH,
              remark="no time is published"),
    Published("FB15k", "GraphVite, TransE", "4 V100", 4, GRAPHVITE, run=13.5 * 60,
              remark="592 thousand facts; no time for a large graph is published"),
)  # fmt: skip
