# Megatron-LM's own reader of a layout: megatron_layout.py LAYOUT PIPELINE-SIZE LAYERS prints the decoder layers of each stage.
from absent import *
from megatron.core.transformer.pipeline_parallel_layer_layout import PipelineParallelLayerLayout

layout = PipelineParallelLayerLayout(sys.argv[1], int(sys.argv[2]))
layout.validate_layer_layout(int(sys.argv[3]), 0)
by_rank = layout.layout  # of each rank its chunks
chunks = max(len(one) for one in by_rank)
stages = [by_rank[rank][chunk] for chunk in range(chunks) for rank in range(len(by_rank))]
print(*(sum(layer.name == "decoder" for layer in stage) for stage in stages))
