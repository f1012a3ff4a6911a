import os

if os.environ.get("STAND_IN_OLD"):
    raise ImportError("this Triton has no tensor descriptors")


class TensorDescriptor:
    def __init__(self, tensor):
        self.tensor = tensor

    @classmethod
    def from_tensor(cls, tensor, box):
        assert len(box) == len(tensor.shape)
        return cls(tensor)
