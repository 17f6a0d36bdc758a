"""Third floor: models, each a Module that reads like its paper."""

from .alexnet import AlexNet
from .bert import BERT, mask_tokens
from .dcgan import DCGANDiscriminator, DCGANGenerator
from .densenet import DenseNet, densenet_bc
from .gpt import GPT
from .graph import GAT, GCN, GraphSAGE
from .lenet import LeNet, LeNet5
from .mlp import MLP
from .mobilenet import MobileNet
from .recurrent import LSTMLanguageModel, LSTMTagger
from .resnet import ResNet, resnet18, resnet20, resnet50, resnet56, resnet110
from .seq2seq import Seq2SeqTransformer
