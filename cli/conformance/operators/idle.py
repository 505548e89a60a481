"""Owns header parameters that change no result that is judged, and why: operator documents say so.

Of the rows they are told apart by the row's name, which stands for every version that it serves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_SPEED: Final = "chooses between algorithms of one result"
_RANKS: Final = "judged on a communicator of one rank; tests of the simulator compare several"
_SPEEDS: Final = """commTurn streamMode commAlg commMode innerPrecise innerPrecisionMode
cubeMathType tuningConfigOptional tuningConfig deterministic sparse topKGuess useLocking"""
_OF_RANKS: Final = """group groupEp groupTp epWorldSize epRankId tpWorldSize tpRankId worldSize
rankSize globalBs reduceOp"""
# Those that change no result wherever they stand.
ANYWHERE: Final[Mapping[str, str]] = {
    **dict.fromkeys(_SPEEDS.split(), _SPEED),
    **dict.fromkeys(_OF_RANKS.split(), _RANKS),
}

_RESERVED: Final = """
aclnnFlashAttentionScore paddingMaskOptional
aclnnFlashAttentionScoreV2 paddingMaskOptional
aclnnFlashAttentionScoreGrad paddingMaskOptional softmaxInOptional
aclnnFlashAttentionScoreGradV2 paddingMaskOptional softmaxInOptional
aclnnFlashAttentionVarLenScore paddingMaskOptional
aclnnFlashAttentionVarLenScoreV2 paddingMaskOptional
aclnnFlashAttentionVarLenScoreV3 paddingMaskOptional
aclnnFlashAttentionVarLenScoreV4 paddingMaskOptional
aclnnFlashAttentionUnpaddingScoreGrad paddingMaskOptional softmaxInOptional dpseOut
aclnnFlashAttentionUnpaddingScoreGradV2 paddingMaskOptional softmaxInOptional dpseOut
aclnnFlashAttentionUnpaddingScoreGradV3 paddingMaskOptional softmaxInOptional dpseOut
aclnnFlashAttentionUnpaddingScoreGradV3 pseShiftOptional
aclnnFlashAttentionUnpaddingScoreGradV4 paddingMaskOptional softmaxInOptional dpseOut
aclnnIncreFlashAttention pseShift
aclnnIncreFlashAttentionV2 pseShift
aclnnIncreFlashAttentionV3 pseShift
aclnnIncreFlashAttentionV4 pseShift
aclnnAlltoAllvGroupedMatMul sendCountsTensorOptional recvCountsTensorOptional
aclnnAlltoAllvQuantGroupedMatMul sendCountsTensorOptional recvCountsTensorOptional
aclnnGroupedMatMulAlltoAllv sendCountsTensorOptional recvCountsTensorOptional
aclnnQuantGroupedMatMulAlltoAllv sendCountsTensorOptional recvCountsTensorOptional
aclnnGroupedMatmulV4 activationInputOptional activationQuantScaleOptional
aclnnGroupedMatmulV4 activationQuantOffsetOptional activationFeatureOutOptional
aclnnGroupedMatmulV4 dynQuantScaleOutOptional
aclnnGroupedMatmulWeightNz activationInputOptional activationQuantScaleOptional
aclnnGroupedMatmulWeightNz activationQuantOffsetOptional activationFeatureOutOptional
aclnnGroupedMatmulWeightNz dynQuantScaleOutOptional
aclnnGroupedMatmulFinalizeRoutingV2 antiquantScaleOptional antiquantOffsetOptional
aclnnGroupedMatmulFinalizeRoutingWeightNzV2 bias antiquantScaleOptional antiquantOffsetOptional
aclnnQuantMatmulV5 x1Offset
aclnnQuantMatmulDequant biasOptional xOffsetOptional
aclnnQuantGroupedMatmulDequant biasOptional xOffsetOptional
aclnnQuantMatmulReduceSumWeightNz yScale x1Offset x2Offset yOffset bias groupSize
aclnnTransposeBatchMatMul bias
aclnnTransposeQuantBatchMatMul bias
aclnnAdaLayerNormQuant quantOffsetOptional
aclnnCrossEntropyLossGrad gradZlossOptional lseForZlossOptional lseSquareScaleForZloss
aclnnFusedCrossEntropyLossWithMaxSum inputOptional weightOptional
aclnnFusedQuantMatmul yScaleOptional x1OffsetOptional x2OffsetOptional yOffsetOptional
aclnnFusedQuantMatmul groupSizeOptional
aclnnGRU dropout
aclnnLSTM dropout
aclnnLstmBackward outputMask
aclnnLogSigmoidBackward buffer
aclnnMaxUnpool3d stride padding
aclnnMoeDistributeCombine xActiveMask activationScale weightScale groupList outDtype groupListType
aclnnMoeDistributeCombineV2 activationScaleOptional weightScaleOptional groupListOptional outDtype
aclnnMoeDistributeCombineV2 groupListType
aclnnMoeDistributeCombineAddRmsNorm activationScaleOptional weightScaleOptional groupListOptional
aclnnMoeDistributeCombineAddRmsNorm expandScalesOptional outDtype commQuantMode groupListType
aclnnMoeDistributeDispatch xActiveMask
aclnnSwigluMxQuantWithDualAxis maxDtypeValue
aclnnSwigluBackwardMxQuantWithDualAxis maxDtypeValue
aclnnGroupedDynamicMxQuantWithDualAxis maxDtypeValue
aclnnWeightQuantBatchMatmulNz quantScaleOptional quantOffsetOptional
"""
_ONE: Final = """
aclnnAdaLayerNormQuant quantMode
aclnnAddRmsNormQuant axis
aclnnAddRmsNormQuantV2 axis
aclnnAllGatherMatmul gatherIndex
aclnnApplyRotaryPosEmb layout
aclnnApplyRotaryPosEmbV2 layout
aclnnBidirectionLSTM numLayers
aclnnDynamicDualLevelMxQuant level0BlockSize level1BlockSize
aclnnFlashAttentionUnpaddingScoreGrad inputLayout
aclnnFlashAttentionUnpaddingScoreGradV2 inputLayout
aclnnFlashAttentionUnpaddingScoreGradV3 inputLayout pseType
aclnnFlashAttentionVarLenScore inputLayout
aclnnFlashAttentionVarLenScoreV2 inputLayout
aclnnFlashAttentionVarLenScoreV3 inputLayout
aclnnFlashAttentionVarLenScoreV4 inputLayout
aclnnFusedCrossEntropyLossWithMaxSum labelSmoothing
aclnnGroupedDynamicMxQuant blocksize
aclnnGroupedMatmulFinalizeRouting dtype transposeX transposeW
aclnnGroupedMatmulFinalizeRoutingV2 dtype transposeX1 transposeX2
aclnnGroupedMatmulFinalizeRoutingWeightNz dtype transposeX1 transposeX2
aclnnGroupedMatmulFinalizeRoutingWeightNzV2 dtype transposeX1 transposeX2
aclnnInplaceQuantScatter axis reduction
aclnnInplaceQuantScatterV2 axis reduction
aclnnMaxPool autoPad dilations
aclnnMaxPool2dWithMask dilation
aclnnMoeDistributeCombine expertShardType
aclnnMoeDistributeCombineAddRmsNorm expertShardType sharedExpertNum sharedExpertRankNum
aclnnMoeDistributeCombineV2 expertShardType
aclnnMoeDistributeDispatch expertShardType
aclnnMoeDistributeDispatchV2 expertShardType
aclnnNsaCompress layoutOptional actSeqLenType
aclnnNsaCompressGrad layoutOptionalOptional actSeqLenType
aclnnNsaSelectedAttention inputLayout
aclnnNsaSelectedAttentionGrad inputLayout
aclnnQuantMatmulDequant transposeWeight
aclnnQuantGroupedMatmulDequant transposeWeight
aclnnQuantMatmulReduceSumWeightNz transposeX1 transposeX2 dims keepDims
aclnnRmsNormDynamicQuant dstType
aclnnRmsNormGradQuant quantMode
aclnnRotateQuant axis trans
aclnnScaledMaskedSoftmaxBackward fixTriuMask
aclnnScatterList reduceOptional
aclnnSwigluBackwardMxQuantWithDualAxis roundModeOptional
aclnnTransposeQuantBatchMatMul permX1 permY batchSplitFactor
"""
_SAVED: Final = """
aclnnBlockSparseAttentionGrad attentionOut softmaxLse
aclnnCtcLossBackward negLogLikelihood logAlpha
aclnnFlashAttentionScoreGrad softmaxMaxOptional softmaxSumOptional attentionInOptional
aclnnFlashAttentionScoreGradV2 softmaxMaxOptional softmaxSumOptional attentionInOptional
aclnnFlashAttentionUnpaddingScoreGrad softmaxMaxOptional softmaxSumOptional attentionInOptional
aclnnFlashAttentionUnpaddingScoreGradV2 softmaxMaxOptional softmaxSumOptional attentionInOptional
aclnnFlashAttentionUnpaddingScoreGradV3 softmaxMaxOptional softmaxSumOptional attentionInOptional
aclnnFlashAttentionUnpaddingScoreGradV4 softmaxMaxOptional softmaxSumOptional attentionInOptional
aclnnFusedFloydAttentionGrad softmaxMax softmaxSum attentionIn
aclnnGeGluBackward gelu
aclnnGeGluV3Backward gelu
aclnnGroupNormSwishGrad mean rstd
aclnnMoeTokenPermuteWithRoutingMapGrad sortedIndices
aclnnNsaSelectedAttentionGrad attentionOut softmaxMax softmaxSum
aclnnSparseFlashAttentionGrad out softmaxMax softmaxSum
"""
_FOLLOWS: Final = """
aclnnAdaLayerNormBackward normalizedShape shift
aclnnAdvanceStepV2 numSeqs numQueries
aclnnAlltoAllvGroupedMatMul recvCounts
aclnnAlltoAllvQuantGroupedMatMul recvCounts
aclnnGroupedMatMulAlltoAllv recvCounts
aclnnQuantGroupedMatMulAlltoAllv recvCounts
aclnnBatchNormGatherStatsWithCounts input
aclnnConvolutionBackward biasSizes
aclnnExpandIntoJaggedPermute outputSize
aclnnFlashAttentionUnpaddingScoreGrad headNum
aclnnFlashAttentionUnpaddingScoreGradV2 headNum
aclnnFlashAttentionUnpaddingScoreGradV3 headNum
aclnnFlashAttentionUnpaddingScoreGradV4 headNum
aclnnFlashAttentionVarLenScore headNum
aclnnFlashAttentionVarLenScoreV2 headNum
aclnnFlashAttentionVarLenScoreV3 headNum
aclnnFlashAttentionVarLenScoreV4 headNum
aclnnLstmBackward hasBias
aclnnMaxPool2dWithIndicesBackward kernelSize stride padding dilation ceilMode
aclnnMaxPool3dWithArgmaxBackward kernelSize stride padding dilation ceilMode
aclnnMaxPool2dWithMask ceilMode
aclnnMaxUnpool2dBackward outputSize
aclnnMaxUnpool3dBackward outputSize stride padding
aclnnMoeDistributeCombine expandIdx epSendCounts moeExpertNum
aclnnMoeDistributeCombineAddRmsNorm assistInfoForCombine epSendCounts moeExpertNum
aclnnMoeDistributeCombineV2 assistInfoForCombine epSendCounts moeExpertNum
aclnnMoeTokenUnpermuteWithRoutingMap routingMapOptional
aclnnMoeTokenUnpermuteWithRoutingMapGrad routingMapOptional restoreShapeOptional
aclnnNsaSelectedAttention headNum selectedBlockCount
aclnnNsaSelectedAttentionGrad headNum selectedBlockCount
aclnnRepeatInterleave outputSize
aclnnRepeatInterleaveInt outputSize
aclnnRepeatInterleaveIntWithDim outputSize
aclnnRepeatInterleaveTensor outputSize
aclnnRepeatInterleaveWithDim outputSize
aclnnRoiPoolingGradWithArgMax pooledH pooledW spatialScale
aclnnUpsampleBicubic2dAAGrad outputSize
aclnnUpsampleBilinear2dAABackward outputSize
"""
# A pass through whole operators has other ranks, or nothing that several ranks send.
_OTHERS: Final = """
aclnnAlltoAllAllGatherBatchMatMul xShardType
aclnnBatchMatMulReduceScatterAlltoAll yShardType
aclnnDistributeBarrier timeOut elasticInfo
aclnnMoeDistributeCombine tpSendCounts sharedExpertNum sharedExpertRankNum commQuantMode
aclnnMoeDistributeCombineAddRmsNorm tpSendCountsOptional elasticInfoOptional
aclnnMoeDistributeCombineV2 tpSendCountsOptional sharedExpertNum sharedExpertRankNum commQuantMode
aclnnMoeDistributeCombineV2 elasticInfoOptional performanceInfoOptional
aclnnMoeDistributeDispatch sharedExpertNum sharedExpertRankNum tpRecvCounts
aclnnMoeDistributeDispatchV2 sharedExpertNum sharedExpertRankNum tpRecvCountsOut
aclnnMoeDistributeDispatchV2 elasticInfoOptional performanceInfoOptional
aclnnQuantMatmulAllReduceV4 commQuantMode
"""
_FAST: Final = """
aclnnIndexAddV2 mode
"""
_NO_INT8: Final = """
aclnnIncreFlashAttentionV2 dequantScale1 quantScale1 dequantScale2
aclnnIncreFlashAttentionV3 dequantScale1 quantScale1 dequantScale2
aclnnIncreFlashAttentionV4 dequantScale1 quantScale1 dequantScale2
"""
_ASKED: Final = """
aclnnAddLayerNormQuant additionalOutput
aclnnAddLayerNormQuantV2 additionalOutput
aclnnAddRmsNormDynamicMxQuant outputRstd
aclnnRmsNormDynamicMxQuant outputRstd
aclnnRmsNormQuantV3 outputRstd
aclnnBatchNormReduceBackward inputG weightG biasG
aclnnGroupNormSwishGrad dgammaIsRequire dbetaIsRequire
aclnnMoeInitRoutingV3 expertTokensNumFlag
aclnnKvRmsNormRopeCache isOutputKv
aclnnUnique sorted returnInverse
aclnnUnique2 sorted returnInverse returnCounts
aclnnUniqueConsecutive returnInverse returnCounts
aclnnUniqueDim sorted returnInverse
aclnnSparseFlashAttention returnSoftmaxLse
aclnnLightningIndexer returnValues
aclnnDequantRopeQuantKvcache kvOutput
aclnnTopKTopPSample isNeedLogits
aclnnTopKTopPSampleV2 isNeedLogits
aclnnGRU train
aclnnGRUBackward hasBias
aclnnSvd computeUV
"""
_REASONS: Final[Mapping[str, str]] = {
    "reserved, or not used in any version: documents ask for null or 0": _RESERVED,
    "documents allow one value": _ONE,
    "what the forward pass saved: the reference computes it again from the other inputs": _SAVED,
    "follows from the other arguments and from sizes": _FOLLOWS,
    _RANKS: _OTHERS,
    _SPEED: _FAST,
    "of an int8 query, which no document lists": _NO_INT8,
    "asks for a result that every sample asks for": _ASKED,
}


def _table() -> dict[tuple[str, str], str]:
    named: dict[tuple[str, str], str] = {}
    for reason, lines in _REASONS.items():
        for line in lines.split("\n"):
            row, *params = line.split() or [""]
            named.update({(row, param): reason for param in params})
    return named


OWN: Final[Mapping[tuple[str, str], str]] = _table()


def idle(row: str, param: str) -> str:
    """Why a header parameter of a row changes no result that is judged; "" where it may."""
    return ANYWHERE.get(param, "") or OWN.get((row, param), "")
