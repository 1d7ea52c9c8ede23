// What an import says of a job beyond its kernels: hosts and dimensions of parallelism, bytes of collectives and
// copies, the ranks that others wait for.
#include <QtTest/QtTest>

#include <fstream>

#include "tests/traces/import_rig.h"
#include "traces/analysis/collective_groups.h"
#include "traces/analysis/kernels.h"
#include "traces/analysis/work_bytes.h"
#include "traces/report/tables.h"
#include "traces/run/rank_places.h"
#include "traces/store/run_file.h"

using namespace stagewright;
using namespace stagewright::import_rig;

namespace {

// Ranks of two hosts, two pipeline stages and two copies: in every one of three rounds rank 2 enters the reduction 30
// µs after the others. A second reduction of each round is sixteen times as large, and all enter it together.
std::vector<std::string> writeJob(const QTemporaryDir& folder, int ranks = 4)
{
    std::vector<std::string> files;
    for (int rank = 0; rank < ranks; ++rank) {
        std::string text = "{'schemaVersion':1,'distributedInfo':{'backend':'nccl','rank':" + std::to_string(rank) +
                           ",'world_size':4,'pg_config':["
                           "{'pg_name':'0','pg_desc':'default_pg','ranks':[0,1,2,3]},"
                           "{'pg_name':'1','pg_desc':'mesh_pp','ranks':" +
                           (rank % 2 == 0 ? "[0,2]" : "[1,3]") +
                           "},"
                           "{'pg_name':'2','pg_desc':'DATA_PARALLEL_GROUP','ranks':" +
                           (rank < 2 ? "[0,1]" : "[2,3]") + "}]},'traceEvents':[";
        const auto kernel = [&text](const char* name, int start, int length, const std::string& args) {
            text += "{'ph':'X','cat':'kernel','name':'" + std::string(name) +
                    "','pid':0,'tid':7,'ts':" + std::to_string(start) + ",'dur':" + std::to_string(length) +
                    ",'args':{'device':0,'stream':7" + args + "}},";
        };
        const auto reduction = [](int elements, int number) {
            return ",'Collective name':'allreduce','In msg nelems':" + std::to_string(elements) +
                   ",'Out msg nelems':" + std::to_string(elements) +
                   ",'dtype':'BFloat16','Process Group Name':'0','Seq':" + std::to_string(number);
        };
        for (int round = 0; round < 3; ++round) {
            const int begin = 1000 + 1000 * round;
            const int late = rank == 2 ? 30 : 0;
            kernel("gemm", begin, 100 + late, "");
            kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", begin + 100 + late, 50 - late,
                   reduction(1000, 2 * round));
            kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", begin + 200, 80, reduction(16'000, 2 * round + 1));
            text += "{'ph':'X','cat':'gpu_memcpy','name':'Memcpy HtoD (Pinned -> Device)','pid':0,'tid':7,'ts':" +
                    std::to_string(begin + 400) +
                    ",'dur':10,'args':{'device':0,'stream':7,'bytes':" + std::to_string(1000 * (rank + 1)) + "}},";
        }
        const char* host = rank < 2 ? "gpu-01" : "gpu-02";
        files.push_back(
            folder.filePath(QString::fromLatin1(host) + "_47%1.1694128201545.pt.trace.json").arg(rank).toStdString());
        std::ofstream(files.back(), std::ios::binary) << quoted(text + "{'ph':'i','name':'end','ts':9000}]}");
    }
    return files;
}

TableCell cellOf(const ReportTable& table, std::size_t row, const char* column)
{
    for (std::size_t i = 0; i < table.columns.size(); ++i)
        if (table.columns[i].key == column) return table.rows.at(row).at(i);
    return std::string("no such column");
}

} // namespace

class TestJobPlaces : public QObject {
    Q_OBJECT

private slots:
    // FSDP beside tensor parallelism: gathers and reductions of the data-parallel group are on lanes of their own, the
    // tensor group's are not.
    void dataParallelLanes()
    {
        QTemporaryDir folder;
        std::vector<std::string> files;
        for (int rank = 0; rank < 2; ++rank) {
            std::string text = "{'schemaVersion':1,'distributedInfo':{'backend':'nccl','rank':" + std::to_string(rank) +
                               ",'world_size':2,'pg_config':[{'pg_name':'1','pg_desc':'mesh_fsdp','ranks':[0,1]},{'pg_"
                               "name':'2','pg_desc':'mesh_tp','ranks':[0,1]}]},'traceEvents':[";
            int number = 0;
            const auto kernel = [&](const char* name, int start, int length, const char* collective = "",
                                    const char* group = "1") {
                std::string args;
                if (*collective != 0)
                    args = std::string(",'Collective name':'") + collective +
                           "','In msg nelems':8,'Out msg nelems':16,'dtype':'BFloat16','Process Group Name':'" + group +
                           "','Seq':" + std::to_string(number++);
                text += "{'ph':'X','cat':'kernel','name':'" + std::string(name) +
                        "','pid':0,'tid':" + (*collective != 0 ? "20" : "7") + ",'ts':" + std::to_string(start) +
                        ",'dur':" + std::to_string(length) +
                        ",'args':{'device':0,'stream':" + (*collective != 0 ? "20" : "7") + args + "}},";
            };
            kernel("ncclDevKernel_AllGather_RING_LL", 1000, 100, "_allgather_base");
            kernel("gemm", 1050, 200);
            kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 1250, 40, "allreduce", "2");
            kernel("gemm", 1300, 100);
            kernel("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL", 1350, 150, "_reduce_scatter_base");
            files.push_back(folder.filePath(QStringLiteral("rank%1.json").arg(rank)).toStdString());
            std::ofstream(files.back(), std::ios::binary) << quoted(text + "{'ph':'i','name':'end','ts':9000}]}");
        }
        const ImportResult result = imported(files);
        QCOMPARE(result.runs.size(), std::size_t{1});
        const Timeline& timeline = *result.runs[0].run.timeline;
        for (int rank = 0; rank < 2; ++rank) {
            const Track* gather = timeline.trackOf(rank, Lane::Gather);
            const Track* reduce = timeline.trackOf(rank, Lane::Reduce);
            QVERIFY(gather != nullptr && reduce != nullptr);
            QCOMPARE(gather->end - gather->begin, SpanId{1});
            QCOMPARE(reduce->end - reduce->begin, SpanId{1});
            QCOMPARE(timeline.spansOf(*gather).front().duration(), Nanos{100'000});
        }
        const ReportTable table = reportTable(*findAnalysis("collectives"), StepContext(result.runs[0].run, 0));
        QCOMPARE(table.rows.size(), std::size_t{4});
        QVERIFY(cellOf(table, 0, "hidden_ns") == TableCell(std::int64_t{50'000}));
        QVERIFY(cellOf(table, 0, "outside_ns") == TableCell(std::int64_t{50'000}));
        QVERIFY(cellOf(table, 1, "outside_ns") == TableCell(std::int64_t{100'000}));
    }

    void dimensions()
    {
        QVERIFY(dimensionOf("mesh_pp") == ParallelDimension::Pipeline);
        QVERIFY(dimensionOf("PIPELINE_MODEL_PARALLEL_GROUP") == ParallelDimension::Pipeline);
        QVERIFY(dimensionOf("TENSOR_MODEL_PARALLEL_GROUP") == ParallelDimension::Tensor);
        QVERIFY(dimensionOf("mesh_dp_shard") == ParallelDimension::Data);
        QVERIFY(dimensionOf("EXPERT_MODEL_PARALLEL_GROUP") == ParallelDimension::Expert);
        QVERIFY(!dimensionOf("TENSOR_AND_DATA_PARALLEL_GROUP"));
        QVERIFY(!dimensionOf("EXPERT_DATA_PARALLEL_GROUP"));
        QVERIFY(!dimensionOf("default_pg"));
        QCOMPARE(hostInName("gpu-07_4711.1694128201545.pt.trace.json.gz"), std::string("gpu-07"));
        QCOMPARE(hostInName("worker0_step_12.1694128201545.pt.trace.json.gz"), std::string());
        QCOMPARE(hostInName("rank0.json"), std::string());
    }

    void hostsAndPlaces()
    {
        QTemporaryDir folder;
        const ImportResult result = imported(writeJob(folder));
        QCOMPARE(result.runs.size(), std::size_t{1});
        // as it is read from a file
        auto file = RunFile::open(folder.filePath("job.stagewright").toStdString(), OpenMode::Create);
        QVERIFY(file);
        const auto id = (*file)->add(result.runs[0].run);
        QVERIFY(id);
        const auto run = (*file)->read(*id);
        QVERIFY(run);
        const auto fact = [&](const char* key) {
            for (const auto& [name, value] : run->configuration)
                if (name == key) return value;
            return std::string();
        };
        QCOMPARE(fact("parallel"), std::string("pipeline 2 × data 2"));
        const auto places = placesOf(*run);
        QCOMPARE(places.size(), std::size_t{4});
        QCOMPARE(places[2].host, std::string("gpu-02"));
        QCOMPARE(places[2].place[static_cast<std::size_t>(ParallelDimension::Pipeline)], 1);
        QCOMPARE(places[3].place[static_cast<std::size_t>(ParallelDimension::Data)], 1);
        QCOMPARE(places[3].place[static_cast<std::size_t>(ParallelDimension::Tensor)], -1);
        // rank 2 enters last by 30 µs, three times, and three others wait
        const ReportTable late = reportTable(*findAnalysis("stragglers"), StepContext(*run, 0));
        QVERIFY2(late.unknown.empty(), late.unknown.c_str());
        QVERIFY(cellOf(late, 0, "rank") == TableCell(std::int64_t{2}));
        QVERIFY(cellOf(late, 0, "host") == TableCell(std::string("gpu-02")));
        QVERIFY(cellOf(late, 0, "pipeline") == TableCell(std::int64_t{1}));
        QVERIFY(cellOf(late, 0, "waited_for_ns") == TableCell(std::int64_t{3 * 3 * 30'000}));
        QVERIFY2(late.sentence.find("rank 2, 100.0 %") != std::string::npos &&
                     late.sentence.find("host gpu-02") != std::string::npos,
                 late.sentence.c_str());
        // sizes
        const ReportTable exposed = reportTable(*findAnalysis("exposed_communication"), StepContext(*run, 0));
        QCOMPARE(exposed.rows.size(), std::size_t{2});
        QVERIFY(cellOf(exposed, 0, "size") == TableCell(std::int64_t{16'384})); // 32,000 bytes
        QVERIFY(cellOf(exposed, 1, "size") == TableCell(std::int64_t{1'024}));  // 2,000
        QVERIFY(cellOf(exposed, 0, "calls") == TableCell(std::int64_t{12}));
        QVERIFY(std::abs(std::get<double>(cellOf(exposed, 0, "gigabytes_per_second")) - 32'000.0 / 80'000.0) < 1e-12);
        // the small one: three ranks wait 30 of 50 µs, three times, and then all transfer for 20; the large one: nobody
        const double all = 2.0 * 3 / 4; // bus bandwidth of an all-reduce of four
        QVERIFY(cellOf(exposed, 0, "waiting_ns") == TableCell(std::int64_t{0}));
        QVERIFY(cellOf(exposed, 0, "waited_for_rank") == TableCell());
        QVERIFY(cellOf(exposed, 0, "transfer_ns") == TableCell(std::int64_t{12 * 80'000}));
        QVERIFY(std::abs(std::get<double>(cellOf(exposed, 0, "bus_gigabytes_per_second")) - all * 0.4) < 1e-12);
        QVERIFY(cellOf(exposed, 1, "matched_calls") == TableCell(std::int64_t{12}));
        QVERIFY(cellOf(exposed, 1, "waiting_ns") == TableCell(std::int64_t{3 * 3 * 30'000}));
        QVERIFY(cellOf(exposed, 1, "waited_for_rank") == TableCell(std::int64_t{2}));
        QVERIFY(cellOf(exposed, 1, "transfer_ns") == TableCell(std::int64_t{12 * 20'000}));
        QVERIFY(std::abs(std::get<double>(cellOf(exposed, 1, "transfer_gigabytes_per_second")) - 0.1) < 1e-12);
        QVERIFY(std::abs(std::get<double>(cellOf(exposed, 1, "bus_gigabytes_per_second")) - all * 0.1) < 1e-12);
        QVERIFY2(exposed.sentence.find("collectives wait 270.0 µs for their last rank and transfer for 1.20 ms") !=
                         std::string::npos &&
                     exposed.sentence.find("lack") == std::string::npos,
                 exposed.sentence.c_str());
        const ReportTable copies = reportTable(*findAnalysis("copies"), StepContext(*run, 0));
        QCOMPARE(copies.rows.size(), std::size_t{4});
        for (std::size_t row = 0; row < 4; ++row) {
            const auto rank = std::get<std::int64_t>(cellOf(copies, row, "rank"));
            QVERIFY(cellOf(copies, row, "bytes") == TableCell(std::int64_t{3 * 1000 * (rank + 1)}));
            QVERIFY(cellOf(copies, row, "calls") == TableCell(std::int64_t{3}));
        }
        const ReportTable steps = reportTable(*findAnalysis("device_steps"), StepContext(*run, 0));
        QCOMPARE(steps.rows.size(), std::size_t{1});
        QVERIFY(cellOf(steps, 0, "largest_class_ns") > TableCell(std::int64_t{0}));
    }

    // One rank's file: its collectives are counted, though nobody else's side is there.
    void oneRank()
    {
        QTemporaryDir folder;
        const ImportResult result = imported(writeJob(folder, 1));
        QCOMPARE(result.runs.size(), std::size_t{1});
        QCOMPARE(result.runs[0].collectives, std::int64_t{0});
        QCOMPARE(result.runs[0].collectivesAlone, std::int64_t{6});
        QCOMPARE(result.runs[0].messages, std::int64_t{0});
        const ReportTable late = reportTable(*findAnalysis("stragglers"), StepContext(result.runs[0].run, 0));
        QVERIFY(!late.unknown.empty());
        const ReportTable exposed =
            reportTable(*findAnalysis("exposed_communication"), StepContext(result.runs[0].run, 0));
        for (const char* key :
             {"waiting_ns", "transfer_ns", "transfer_gigabytes_per_second", "bus_gigabytes_per_second"})
            QVERIFY2(cellOf(exposed, 0, key) == TableCell(), key);
        QVERIFY(exposed.sentence.find("last rank") == std::string::npos);
    }

    // Two of four ranks: the two that are missing may enter last, so the rate on the bus is unknown, and it is said.
    void ranksMissing()
    {
        QTemporaryDir folder;
        std::vector<std::string> files = writeJob(folder, 3);
        files.erase(files.begin());
        const ImportResult result = imported(files);
        QCOMPARE(result.runs.size(), std::size_t{1});
        QCOMPARE(result.runs[0].collectivesLacking, std::int64_t{6});
        const ReportTable exposed =
            reportTable(*findAnalysis("exposed_communication"), StepContext(result.runs[0].run, 0));
        QVERIFY(cellOf(exposed, 1, "waiting_ns") == TableCell(std::int64_t{3 * 30'000}));
        QVERIFY(std::holds_alternative<double>(cellOf(exposed, 1, "transfer_gigabytes_per_second")));
        QVERIFY(cellOf(exposed, 1, "bus_gigabytes_per_second") == TableCell());
        QVERIFY2(exposed.sentence.find("; 6 of them lack ranks of their group") != std::string::npos,
                 exposed.sentence.c_str());
    }

    // nccl-tests' factors, whatever the spelling.
    void factorsOfTheBus()
    {
        QCOMPARE(busFactor("allreduce", 4), std::optional(1.5));
        QCOMPARE(busFactor("_allgather_base", 4), std::optional(0.75));
        QCOMPARE(busFactor("reduce_scatter_tensor_coalesced", 2), std::optional(0.5));
        QCOMPARE(busFactor("all_to_allv", 8), std::optional(0.875));
        QCOMPARE(busFactor("Broadcast", 8), std::optional(1.0));
        QCOMPARE(busFactor("SendRecv", 2), std::optional<double>());
        QCOMPARE(busFactor("barrier", 2), std::optional<double>());
    }

    // Without sizes columns are unknown, not 0.
    void sizesUnknown()
    {
        const ImportResult result = imported({dataFile("gpu_rank4.json"), dataFile("gpu_rank6.json")});
        const WorkBytes bytes(*result.runs.at(0).run.timeline);
        const ReportTable exposed =
            reportTable(*findAnalysis("exposed_communication"), StepContext(result.runs[0].run, 0));
        for (std::size_t row = 0; row < exposed.rows.size(); ++row)
            if (!bytes.any())
                QVERIFY(std::holds_alternative<std::monostate>(cellOf(exposed, row, "size")) &&
                        std::holds_alternative<std::monostate>(cellOf(exposed, row, "gigabytes_per_second")));
    }
};

QTEST_GUILESS_MAIN(TestJobPlaces)
#include "tst_job_places.moc"
