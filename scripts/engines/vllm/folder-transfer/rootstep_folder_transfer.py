"""A weight transfer backend of vLLM that reads new weights from a folder of safetensors files.

What NCCL does between GPUs, on a machine that has none: the same pause, start, update, finish, resume. Registered through
the entry point in the .dist-info folder beside this file; put the folder on PYTHONPATH and start vLLM with
--weight-transfer-config '{"backend": "folder"}'.
"""

import pathlib
from dataclasses import dataclass

from safetensors.torch import load_file
from vllm.distributed.weight_transfer.base import (
    WeightTransferEngine,
    WeightTransferInitInfo,
    WeightTransferUpdateInfo,
)


@dataclass
class FolderInitInfo(WeightTransferInitInfo):
    pass


@dataclass
class FolderUpdateInfo(WeightTransferUpdateInfo):
    folder: str


class FolderTransferEngine(WeightTransferEngine[FolderInitInfo, FolderUpdateInfo]):
    init_info_cls = FolderInitInfo
    update_info_cls = FolderUpdateInfo

    def init_transfer_engine(self, init_info):
        pass

    def start_weight_update(self):
        from vllm.model_executor.model_loader.reload import initialize_layerwise_reload

        initialize_layerwise_reload(self.model)

    def finish_weight_update(self):
        from vllm.model_executor.model_loader.reload import finalize_layerwise_reload

        finalize_layerwise_reload(self.model, self.model_config)

    def update_weights(self, update_info):
        # The base class waits for an accelerator afterwards; there is none.
        self.receive_weights(self.parse_update_info(update_info))

    def receive_weights(self, update_info):
        files = sorted(pathlib.Path(update_info.folder).glob("*.safetensors"))
        if not files:
            raise FileNotFoundError(f"no safetensors file in {update_info.folder}")
        for file in files:
            self.model.load_weights(load_file(file).items())

    def shutdown(self):
        pass


def register():
    from vllm.distributed.weight_transfer.factory import WeightTransferEngineFactory

    if "folder" not in WeightTransferEngineFactory._registry:
        WeightTransferEngineFactory.register_engine("folder", FolderTransferEngine)
