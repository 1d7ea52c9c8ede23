// What GPU records show on a timeline: kernel table, launch gaps, links, roofline; on samples::gpuStep().
#include <set>

#include <QTest>

#include "gpu_step.h"
#include "sample_runs.h"
#include "traces/analysis/coverage.h"
#include "traces/analysis/kernel_class.h"
#include "traces/analysis/kernel_classes.h"
#include "traces/analysis/kernels.h"
#include "traces/analysis/launch_gaps.h"
#include "traces/analysis/links.h"
#include "traces/analysis/roofline.h"
#include "traces/analysis/step_context.h"
#include "traces/report/tables.h"

using namespace stagewright;

namespace {

using samples::us;

std::shared_ptr<const Timeline> step() { return samples::gpuStep(); }

} // namespace

class TestKernels : public QObject {
    Q_OBJECT

private slots:
    void coverageIsAUnion()
    {
        Coverage coverage;
        QCOMPARE(coverage.total(), Nanos(0));
        QCOMPARE(coverage.within(0, 10), Nanos(0));
        coverage.add(20, 30);
        coverage.add(5, 5);
        coverage.add(0, 10);
        coverage.add(8, 12);
        QCOMPARE(coverage.total(), Nanos(22));
        QCOMPARE(coverage.within(9, 21), Nanos(4));
        coverage.add(11, 22);
        QCOMPARE(coverage.within(-5, 100), Nanos(30));
    }

    // Names as the libraries give them, from traces of NVIDIA's and AMD's devices.
    void classes()
    {
        using K = KernelClass;
        const std::vector<std::pair<K, const char*>> names{
            {K::MatrixProduct, "volta_sgemm_128x32_nt"},
            {K::MatrixProduct, "ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_32x3_tn"},
            {K::MatrixProduct, "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_"
                               "segment_k_off_kernel__5x_cublas"},
            {K::MatrixProduct, "nvjet_tst_192x192_64x4_2x1_v_bz_coopB_bias_TNN"},
            {K::MatrixProduct,
             "void gemmSN_TN_kernel<float, 128, 16, 2, 4, 8, 9, false, cublasGemvTensorStridedBatched<float const>, "
             "cublasGemvTensorStridedBatched<float const>, cublasGemvTensorStridedBatched<float> "
             ">(cublasGemmSmallNParams<cublasGemvTensorStridedBatched<float const>)"},
            {K::MatrixProduct, "void gemvNSP_kernel<float, float, float, float, 1, 16, 4, 1024, false, "
                               "cublasGemvParams<cublasGemvTensorStridedBatched<float const> > >"},
            {K::MatrixProduct, "void splitKreduce_kernel<32, 16, int, float, float, float, float, true, true, "
                               "false>(cublasSplitKParams<float>, float const*, float const*, float*)"},
            {K::MatrixProduct, "void cublasLt::splitKreduce_kernel<32, 16, int, __nv_bfloat16, __nv_bfloat16, float, "
                               "true, false, false>(cublasLt::cublasSplitKParams<float>)"},
            {K::Reduction, "void dot_kernel<float, 128, 0, cublasDotParams<cublasGemvTensorStridedBatched<float "
                           "const>, cublasGemvTensorStridedBatched<float> > >(cublasDotParams<float>)"},
            {K::MatrixProduct, "void "
                               "cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_128x256_32x3_tn_align8>("
                               "cutlass_80_tensorop_bf16_s16816gemm_bf16_128x256_32x3_tn_align8::Params)"},
            {K::MatrixProduct,
             "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cute::tuple<int, int, int, int>, "
             "cutlass::gemm::collective::CollectiveMma<cutlass::gemm::MainloopSm90TmaGmmaWarpSpecializedFP8<4> >, "
             "cutlass::epilogue::collective::CollectiveEpilogue<cutlass::epilogue::Sm90TmaWarpSpecialized<4> > > "
             ">(Params)"},
            {K::Attention, "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<128, 128, 64, "
                           "4, false, false, cutlass::bfloat16_t> >(pytorch_flash::Flash_fwd_params)"},
            {K::Attention, "void flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Flash_bwd_kernel_traits<64, 128, "
                           "128, 8, 4, 4, 4, false, false, cutlass::half_t> >(Flash_bwd_params)"},
            {K::Attention, "void cutlass::device_kernel<flash::FlashAttnFwdSm90<flash::CollectiveMainloopFwdSm90<2, "
                           "cute::tuple<cute::C<1> > >, flash::CollectiveEpilogueFwd<cute::tuple<cute::C<128> > > > "
                           ">(flash::FlashAttnFwdSm90<T>::Params)"},
            {K::Attention, "fmha_cutlassF_bf16_aligned_64x128_rf_sm80(PyTorchMemEffAttention::AttentionKernel<cutlass::"
                           "bfloat16_t, cutlass::arch::Sm80, true, 64, 128, 128, true, true>::Params)"},
            {K::Attention,
             "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_3_64x128x128_4x1x1_kernel0_0"},
            {K::Attention, "void vllm::paged_attention_v1_kernel<unsigned short, unsigned short, 128, 16, 128, "
                           "(vllm::Fp8KVCacheDataType)0, false>(unsigned short*)"},
            {K::Attention, "triton_tem_fused_flex_attention_0"},
            {K::Attention, "_ZN7ck_tile6kentryILi256ELi2ENS_13FmhaFwdKernelINS_33BlockFmhaPipelineQRKSVSAsyncEEEEEvv"},
            {K::Attention, "attn_fwd"},
            {K::MatrixProduct, "sm80_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x128x64_"
                               "stage3_warpsize2x2x1_g1_tensor16x8x16_kernel"},
            {K::MatrixProduct, "void cudnn::winograd_nonfused::winogradForwardData4x4<float, "
                               "float>(cudnn::winograd_nonfused::WinogradDataParams<float, float>)"},
            {K::MatrixProduct, "volta_scudnn_128x64_relu_interior_nn_v1"},
            {K::Normalisation, "void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, 512, true, 1, "
                               "true>(cudnnTensorStruct, float const*)"},
            {K::Copy, "void cudnn::ops::nchwToNhwcKernel<__half, __half, float, false, true, "
                      "(cudnnKernelDataType_t)0>(cudnn::ops::nchw2nhwc_params_t<float>, __half const*, __half*)"},
            {K::MatrixProduct, "miopenSp3AsmConv_v30_3_1_gfx9_fp32_f3x2_stride1"},
            {K::Normalisation, "MIOpenBatchNormFwdTrainSpatialNorm"},
            {K::SendReceive, "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<(unsigned long)4096>)"},
            {K::SendReceive, "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)"},
            {K::Collective, "ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)"},
            {K::Collective, "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevComm*, unsigned long, ncclWork*)"},
            {K::Collective, "_Z35ncclDevKernel_AllGather_RING_LL128P11ncclDevComm"},
            {K::Collective, "rcclGenericKernel<1, false>(ncclDevKernelArgsStorage<4096ul>)"},
            {K::Collective, "ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)"},
            {K::Collective, "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*, "
                            "vllm::RankSignals, vllm::Signal*)"},
            {K::Collective, "void deep_ep::intranode::dispatch<8, 768>(int4*, float*)"},
            {K::Elementwise, "triton_poi_fused__to_copy_add_mul_3"},
            {K::Normalisation, "triton_red_fused__to_copy_add_mean_mul_native_layer_norm_12"},
            {K::Normalisation, "triton_per_fused__softmax_4"},
            {K::Reduction, "triton_red_fused_sum_7"},
            {K::MatrixProduct, "triton_tem_fused_addmm_15"},
            {K::MatrixProduct, "matmul_kernel"},
            {K::Normalisation, "_rms_norm_forward_kernel"},
            {K::Attention, "_attn_fwd"},
            {K::MatrixProduct, "Cijk_Ailk_Bljk_BBS_BH_Bias_HAS_SAV_UserArgs_MT256x256x64_MI16x16x1_SN_LDSB0_AFC1"},
            {K::MatrixProduct,
             "Custom_Cijk_Alik_Bljk_F8BS_BH_Bias_SHB_HA_S_SAB_NTD_SK3_UserArgs_MT256x256x128_MI16x16x1"},
            {K::MatrixProduct,
             "void ck::kernel_gemm_xdl_cshuffle_v3<ck::GridwiseGemm_xdl_cshuffle_v3<ck::tensor_layout::gemm::RowMajor> "
             ">(ck::Argument)"},
            {K::MatrixProduct,
             "void rocblas_gemvt_sn_kernel<false, 256, 4, long, float, float, float>(int, int, float)"},
            {K::Copy, "__amd_rocclr_copyBuffer"},
            {K::Fill, "__amd_rocclr_fillBufferAligned"},
            {K::Fill, "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<int>, "
                      "at::detail::Array<char*, 1> >(int, at::native::FillFunctor<int>)"},
            {K::Copy, "void "
                      "at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(at::"
                      "TensorIteratorBase&)::{lambda()#3}::operator()() const::{lambda()#7}>"},
            {K::Copy, "void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 2, 128, "
                      "1>(float*, at::native::(anonymous namespace)::CatArrInputTensorMetadata<float>)"},
            {K::Elementwise,
             "void at::native::vectorized_elementwise_kernel<4, "
             "at::native::addcmul_cuda_kernel(at::TensorIteratorBase&, c10::Scalar const&)::{lambda()#2}>"},
            {K::Elementwise, "void at::native::vectorized_elementwise_kernel<(int)8, "
                             "at::native::GeluCUDAKernelImpl(at::TensorIteratorBase &, "
                             "at::native::GeluType)::[lambda() (instance 1)]>"},
            {K::Elementwise, "void at::native::(anonymous namespace)::fused_dropout_kernel_vec<float, float, unsigned "
                             "int, 1, 4, bool>(at::cuda::detail::TensorInfo<float const, unsigned int>)"},
            {K::Elementwise,
             "void at::native::(anonymous namespace)::distribution_elementwise_grid_stride_kernel<float, 4, "
             "at::native::templates::cuda::normal_and_transform<float> >(long)"},
            {K::Normalisation, "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, "
                               "float>(int, float, float const*, float const*, float const*, float*, float*, float*)"},
            {K::Normalisation, "void at::native::(anonymous namespace)::GammaBetaBackwardCUDAKernel<float, "
                               "float>(long, long, float const*)"},
            {K::Normalisation, "void (anonymous namespace)::softmax_warp_forward<float, float, float, 8, true, "
                               "false>(float*, float const*, int, int, int)"},
            {K::Reduction,
             "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float, float, "
             "float, float>, unsigned int, float, 4> >(at::native::ReduceOp<float>)"},
            {K::Reduction, "void at::native::sbtopk::gatherTopK<float, unsigned int, 2, "
                           "false>(at::cuda::detail::TensorInfo<float const, unsigned int>)"},
            {K::Reduction, "void cub::DeviceRadixSortOnesweepKernel<cub::DeviceRadixSortPolicy<long, int, "
                           "int>::Policy800, false, long, int, int, int>(int*, int*, int*, int const*)"},
            {K::Reduction, "void at::native::(anonymous namespace)::nll_loss_forward_reduce_cuda_kernel_2d<float, "
                           "float, long>(float*, float*)"},
            {K::Embedding, "void at::native::(anonymous namespace)::indexSelectLargeIndex<float, long, unsigned int, "
                           "2, 2, -2, true>(at::cuda::detail::TensorInfo<float, unsigned int>)"},
            {K::Embedding, "void (anonymous namespace)::indexing_backward_kernel<float, 4>(long*, long*, float*, "
                           "float*, long, long, long, long, bool)"},
            {K::Embedding, "void split_embedding_backward_codegen_adagrad_unweighted_kernel_warp_per_row_1<float, "
                           "float, float, 1ul, 8>(at::GenericPackedTensorAccessor<float, 2ul>)"},
            {K::Embedding, "void fbgemm_gpu::permute_2D_lengths_kernel<int>(int, int, int const*, int const*, int*)"},
            {K::Optimizer, "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous "
                           "namespace)::FusedOptimizerTensorListMetadata<4>, at::native::(anonymous "
                           "namespace)::FusedAdamMathFunctor<float, 4, (at::native::ADAM_MODE)0, false> >"},
            {K::Optimizer, "void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float, float, int>, "
                           "float, float>(long, int volatile*, TensorListMetadata<4>)"},
            {K::Optimizer,
             "_ZN2at6native12_GLOBAL__N_125multi_tensor_apply_kernelINS1_18TensorListMetadataILi1EEEEEvT_T0_DpT1_"},
            // the own engine's
            {K::Attention, "void stagewright::cuda::flashForwardKernel<float, 64>(float const*, int)"},
            {K::Normalisation, "_ZN11stagewright4cuda10normKernelIfEEvPT_i"},
            // as nvcc 13.0 names it
            {K::Embedding, "_ZN11stagewright4cuda6module43_GLOBAL__N__55ae96d7_10_kernels_cu_"
                           "2506980715tokenGradKernelINS0_4Bf16EEEv20StagewrightEmbedding"},
            {K::Embedding,
             "stagewright::cuda::module::(anonymous namespace)::positionGradKernel<stagewright::cuda::Bf16, 8>"},
            {K::Reduction, "stagewright::cuda::module::(anonymous "
                           "namespace)::columnPartsKernel<stagewright::cuda::PlainRows<stagewright::cuda::Bf16>>"},
            {K::Elementwise, "stagewright::cuda::module::(anonymous "
                             "namespace)::geluGradKernel<stagewright::cuda::GeluRows<stagewright::cuda::Bf16>>"},
            // PyTorch 2.11 on an H100
            {K::Reduction, "void at::native::lpnorm_cleanup<float, (at::native::NormType)1, float, true, float>(float "
                           "const*, float*, int)"},
            {K::Elementwise,
             "void cublasLt::epilogue::impl::globalKernel<8, 32, float, float, float, true, true, 1>(int, int, long)"},
            {K::Elementwise,
             "void scal_kernel<float, float, 1, true, 6, 5, 5, 3>(cublasTransposeParams<float>, float const*, float*)"},
            {K::Optimizer, "void stagewright::cuda::stepKernel<float>(float*, float)"},
            {K::Reduction, "void stagewright::cuda::columnSumsKernel<float>(float const*, float*)"},
            {K::Other, "somebody's"},
            {K::Other, ""},
        };
        std::set<K> seen;
        for (const auto& [of, name] : names) {
            QVERIFY2(classOfKernel(name) == of,
                     qPrintable(QStringLiteral("%1: %2").arg(
                         QLatin1String(name), QString::fromStdString(std::string(toText(classOfKernel(name)))))));
            seen.insert(of);
        }
        QCOMPARE(seen.size(), kernelClassCount); // each class has a name that is of it
        for (const char* copy :
             {"Memcpy HtoD (Pageable -> Device)", "copy within the device", "Memcpy PtoP", "CopyHostToDevice"})
            QVERIFY(classOfCopy(copy) == K::Copy);
        for (const char* fill : {"Memset (Device)", "memset"}) QVERIFY(classOfCopy(fill) == K::Fill);
    }

    void briefNames()
    {
        const std::vector<std::pair<const char*, const char*>> names{
            {"void cutlass::gemm_bf16<128, 64>(int)", "gemm_bf16"},
            {"ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<(unsigned long)4096>)", "ncclDevKernel_SendRecv"},
            {"void at::native::vectorized_elementwise_kernel<(int)8, "
             "at::native::GeluCUDAKernelImpl(at::TensorIteratorBase &, at::native::GeluType)::[lambda() (instance 1)]>",
             "GeluCUDAKernelImpl"},
            {"void at::native::vectorized_elementwise_kernel<4, at::native::AUnaryFunctor<float, float, float, "
             "at::native::binary_internal::MulFunctor<float> >, at::detail::Array<char*, 2> >",
             "MulFunctor"},
            {"void at::native::elementwise_kernel<128, 2, "
             "at::native::gpu_kernel_impl<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#2}>",
             "direct_copy_kernel_cuda"},
            {"void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::func_wrapper_t<float, "
             "at::native::sum_functor<float, float, float> > > >",
             "sum_functor"},
            {"void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous "
             "namespace)::FusedOptimizerTensorListMetadata<4>, at::native::(anonymous "
             "namespace)::FusedAdamMathFunctor<float, 4> >",
             "FusedAdamMathFunctor"},
            {"void at::native::<unnamed>::vectorized_layer_norm_kernel<float, float, (bool)0>(int, T2)",
             "vectorized_layer_norm_kernel"},
            {"void (anonymous namespace)::softmax_warp_forward<float, float, float, 8, true, false>(float*, float "
             "const*, int, int, int)",
             "softmax_warp_forward"},
            {"Memcpy HtoD (Pageable -> Device)", "Memcpy HtoD"},
            {"copy within the device", "copy within the device"},
            {"memset", "memset"},
            {"kernel 3", "kernel 3"},
            {"void gemm", "gemm"},
            {"", ""},
            {"(", "("},
        };
        for (const auto& [name, brief] : names)
            QCOMPARE(QString::fromStdString(briefKernelName(name)), QLatin1String(brief));
    }

    void timeByClass()
    {
        const auto times = analyseKernelClasses(*step(), 0);
        QCOMPARE(times.size(), std::size_t(5)); // matrix product, element-wise, send/receive, copy, other
        QVERIFY(times[0].of == KernelClass::MatrixProduct);
        QCOMPARE(times[0].total, 260 * us);
        QCOMPARE(times[0].running, 260 * us);
        QCOMPARE(times[0].byRank, (std::vector<Nanos>{140 * us, 120 * us}));
        QVERIFY(times[1].of == KernelClass::Elementwise);
        Nanos total = 0;
        for (const ClassTime& time : times) total += time.total;
        QCOMPARE(total, analyseKernels(*step(), 0).total);
        Run run;
        run.timeline = step();
        const ReportTable table = reportTable(*findAnalysis("kernel_classes"), StepContext(run, 0));
        QCOMPARE(table.rows.size(), times.size());
        QCOMPARE(std::get<std::string>(table.rows[0][0]), std::string("matrix_product"));
        QVERIFY(table.sentence.empty());
    }

    void tableByOp()
    {
        const auto timeline = step();
        QVERIFY(hasKernels(*timeline));
        const KernelReport report = analyseKernels(*timeline, 0);
        QCOMPARE(report.calls, std::int64_t(9));
        QCOMPARE(report.total, 355 * us);
        QCOMPARE(report.rows.front().name, std::string("gemm"));
        QVERIFY(report.rows.front().total >= report.rows.back().total);
        bool nobody = false;
        for (const KernelRow& row : report.rows) {
            if (row.name == "gemm" && row.kind == OpKind::Forward) {
                QCOMPARE(row.calls, std::int64_t(2));
                QCOMPARE(row.total, 140 * us);
                QCOMPARE(row.mean(), 70 * us);
                QVERIFY(row.of == KernelClass::MatrixProduct);
                QCOMPARE(row.spread, 30'000.0); // of 40 and 100 µs
                QCOMPARE(row.shortest, 40 * us);
                QCOMPARE(row.longest, 100 * us);
            }
            nobody = nobody || (row.name == "somebody's" && !row.kind);
        }
        QVERIFY(nobody);
        QVERIFY(analyseKernels(*timeline, 7).rows.empty());
    }

    void launchGaps()
    {
        const auto report = analyseLaunchGaps(StepContext(*step(), 0));
        QVERIFY(report);
        QCOMPARE(report->window, 400 * us);
        QCOMPARE(report->ranks[0].inside, 20 * us);
        QCOMPARE(report->ranks[1].inside, 20 * us); // b1's last 20; its message is none of its own time
        QCOMPARE(report->ranks[0].ops, 200 * us);
        QCOMPARE(report->ranks[1].before + report->ranks[0].before, Nanos(0));
        QCOMPARE(report->exposedShare(), 40.0 / 800.0);
    }

    // A kernel launched while the one before it ran, one launched after its end, and one whose launch is not known.
    void lateLaunches()
    {
        const auto gapsOf = [](std::optional<Nanos> second) {
            TimelineBuilder builder(Provenance::Measured, "wall", 1);
            Span span;
            span.op = makeOp(OpKind::Forward, 0, 0);
            span.step = 0;
            span.start = 0;
            span.end = 100 * us;
            const SpanId op = builder.addSpan(builder.addTrack(0, Lane::Compute), span);
            const int kernels = builder.addTrack(0, Lane::Kernel);
            const auto add = [&](Nanos start, Nanos end, Nanos launched) {
                Span work;
                work.step = 0;
                work.start = start;
                work.end = end;
                builder.addEdge(op, builder.addSpan(kernels, work), EdgeKind::Launch, launched);
            };
            add(0, 20 * us, -5 * us);
            add(22 * us, 40 * us, 10 * us);
            add(50 * us, 100 * us, second.value_or(50 * us));
            const auto timeline = builder.build();
            return *analyseLaunchGaps(StepContext(**timeline, 0));
        };
        const LaunchGapReport known = gapsOf(47 * us);
        QCOMPARE(known.ranks[0].inside, 12 * us);
        QCOMPARE(known.ranks[0].late.value(), 7 * us);
        QCOMPARE(known.lateShare().value(), 0.07);
        const LaunchGapReport unknown = gapsOf({});
        QCOMPARE(unknown.ranks[0].inside, 12 * us);
        QVERIFY(!unknown.ranks[0].late && !unknown.lateShare());
    }

    void linksSplitWaitingAndOverlap()
    {
        const std::vector<LinkOverlap> links = analyseLinks(StepContext(*step(), 0));
        QCOMPARE(links.size(), std::size_t(2));
        QCOMPARE(links[0].from, 0);
        QCOMPARE(links[0].transfer, 20 * us);
        QCOMPARE(links[0].coveredBySender.value(), 5 * us); // somebody's kernel; its own copy is not computing
        QCOMPARE(links[0].exposed().value(), 20 * us);
        QCOMPARE(links[0].sendWait.value() + links[0].receiveWait.value(), Nanos(0));
        QCOMPARE(links[1].from, 1);
        QCOMPARE(links[1].receiveWait.value(), 10 * us);
        QCOMPARE(links[1].sendWait.value(), Nanos(0));
        QCOMPARE(links[1].transfer, 10 * us);
        QCOMPARE(links[1].coveredByReceiver.value(), Nanos(0)); // the NCCL kernel of the receiver is communication
    }

    void linksBesideAGraphAreUnknown()
    {
        const std::vector<LinkOverlap> links = analyseLinks(StepContext(*samples::gpuStep("CUDA graph"), 0));
        QCOMPARE(links.size(), std::size_t(2));
        QVERIFY(!links[0].coveredBySender);            // the graph of rank 0 runs while it sends
        QCOMPARE(links[0].exposed().value(), 20 * us); // rank 1 waits
        QCOMPARE(links[1].coveredBySender.value() + links[1].coveredByReceiver.value(), Nanos(0));
    }

    void linksOfArrivalsAlone()
    {
        const auto timeline = samples::simulated("1f1b", 3, 4, 0.25);
        const std::vector<LinkOverlap> links = analyseLinks(StepContext(*timeline, 0));
        QCOMPARE(links.size(), std::size_t(4)); // two neighbours, both ways
        for (const LinkOverlap& link : links) {
            QCOMPARE(link.messages, std::int64_t(4));
            QCOMPARE(link.transfer, 4 * timeline->timeUnit() / 4); // four of a quarter each
            QVERIFY(!link.sendWait && !link.receiveWait);          // of messages whose sends and receives are not seen
        }
        Nanos exposed = 0;
        for (const LinkOverlap& link : links) exposed += link.exposed().value();
        QCOMPARE(exposed, StepContext(*timeline, 0).overlap().exposedTime);
        Run run;
        run.timeline = timeline;
        QVERIFY(findAnalysis("links")->unknown(run).empty());
    }

    void cpuRunsHaveNone()
    {
        const auto timeline = samples::simulated("1f1b", 3, 4);
        QVERIFY(!hasKernels(*timeline));
        Run run;
        run.timeline = timeline;
        QVERIFY(!findAnalysis("kernels")->unknown(run).empty());
        QVERIFY(analyseKernels(*timeline, 0).rows.empty());
        QCOMPARE(analyseLaunchGaps(StepContext(*timeline, 0))->exposedShare(), 0.0);
    }

    void rooflineAgainstItsFormula()
    {
        Run run;
        run.timeline = step();
        run.configuration = {
            {"model", "layers=3,hidden=64,heads=4,seq=32"}, {"stage_layers", "2,1"}, {"microbatch_size", "4"}};
        QVERIFY(!ceilingsOf(run));
        run.environment = {{"ceiling_matrix_flops", "1e12"}, {"ceiling_copy_bytes", "2e11"}};
        const auto ceilings = ceilingsOf(run);
        QVERIFY(ceilings);
        const auto rows = rooflineOf(StepContext(run, 0));
        QVERIFY2(rows, rows ? "" : rows.error().message.c_str());
        QCOMPARE(rows->size(), std::size_t(2));
        const RooflineRow& forward = rows->front();
        QVERIFY(forward.kind == OpKind::Forward && forward.ops == 2 && forward.time == 200 * us);
        const double sbh = 32.0 * 4 * 64;
        const double head = 2 * sbh * 256;
        QCOMPARE(forward.flops, 3 * sbh * (24 * 64 + 4 * 32) + head);
        QCOMPARE(rows->back().flops, 3 * sbh * (48 * 64 + 8 * 32) + 2 * head);
        QCOMPARE(forward.achieved(), forward.flops / 200e-6);
        QCOMPARE(forward.attainable(*ceilings), std::min(1e12, forward.intensity() * 2e11));
        QCOMPARE(forward.share(*ceilings), forward.achieved() / forward.attainable(*ceilings));
        QCOMPARE(forward.memoryBound(*ceilings), forward.intensity() < 5);
        run.configuration.clear();
        const auto unknown = rooflineOf(StepContext(run, 0));
        QVERIFY(!unknown && unknown.error().code == ErrorCode::Usage);
    }

    void everyKernelAnalysisHasItsTable()
    {
        Run run;
        run.timeline = step();
        for (const char* name : {"kernels", "launch_gaps", "links"}) {
            const ReportTable table = reportTable(*findAnalysis(name), StepContext(run, 0));
            QVERIFY(table.unknown.empty() && !table.rows.empty());
        }
    }
};

QTEST_GUILESS_MAIN(TestKernels)
#include "tst_kernels.moc"
