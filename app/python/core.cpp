// The compiled part of the Python package: a run as NumPy arrays over its timeline's own memory, which they keep alive.
// Arrays are read-only. Errors of the libraries are raised as stagewright.core.Fault(message, remedy).
#include <algorithm>
#include <cstddef>
#include <span>
#include <stdexcept>

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "schedules/model/kinds.h"
#include "schedules/text/csv.h"
#include "traces/store/run_file.h"

namespace py = pybind11;

namespace stagewright {

namespace {

struct Fault : std::runtime_error {
    explicit Fault(Error wrong) : std::runtime_error(wrong.message), error(std::move(wrong)) {}
    Error error;
};

template <typename Value>
Value valueOf(Result<Value> result)
{
    if (!result) throw Fault(std::move(result.error()));
    return std::move(*result);
}

struct Field {
    const char* name;
    const char* type; // as NumPy writes it
    std::size_t offset;
};

py::dtype recordOf(std::initializer_list<Field> fields, std::size_t size)
{
    py::list names, formats, offsets;
    for (const Field& field : fields) {
        names.append(field.name);
        formats.append(field.type);
        offsets.append(field.offset);
    }
    return py::dtype(names, formats, offsets, static_cast<py::ssize_t>(size));
}

py::dtype spanRecord()
{
    const std::size_t op = offsetof(Span, op);
    return recordOf({{"start", "<i8", offsetof(Span, start)},
                     {"end", "<i8", offsetof(Span, end)},
                     {"microbatch", "<i4", op + offsetof(Op, microbatch)},
                     {"stage", "<u2", op + offsetof(Op, stage)},
                     {"count", "<u2", op + offsetof(Op, count)},
                     {"slice", "<i2", op + offsetof(Op, slice)},
                     {"kind", "u1", op + offsetof(Op, kind)},
                     {"step", "<i4", offsetof(Span, step)}},
                    sizeof(Span));
}

py::dtype memoryRecord()
{
    return recordOf({{"time", "<i8", offsetof(MemoryEvent, time)},
                     {"delta", "<i8", offsetof(MemoryEvent, delta)},
                     {"microbatch", "<i4", offsetof(MemoryEvent, microbatch)},
                     {"step", "<i4", offsetof(MemoryEvent, step)},
                     {"rank", "<u2", offsetof(MemoryEvent, rank)},
                     {"stage", "<u2", offsetof(MemoryEvent, stage)},
                     {"category", "u1", offsetof(MemoryEvent, category)}},
                    sizeof(MemoryEvent));
}

py::dtype edgeRecord()
{
    return recordOf({{"from", "<u4", offsetof(Edge, from)}, {"arrival", "<i8", offsetof(Edge, arrival)}}, sizeof(Edge));
}

using SharedRun = std::shared_ptr<const Run>;

// Over the values' own memory; `owner` is what keeps it.
template <typename Value>
py::array view(std::span<const Value> values, py::dtype record, const SharedRun& owner)
{
    const py::capsule keeper(new SharedRun(owner), [](void* held) { delete static_cast<SharedRun*>(held); });
    py::array array(std::move(record), {static_cast<py::ssize_t>(values.size())},
                    {static_cast<py::ssize_t>(sizeof(Value))}, values.data(), keeper);
    array.attr("setflags")(py::arg("write") = false);
    return array;
}

py::list tracksOf(const Run& run)
{
    py::list tracks;
    for (const Track& track : run.timeline->tracks())
        tracks.append(py::make_tuple(track.rank, std::string(toText(track.lane)), track.name, track.begin, track.end));
    return tracks;
}

py::array_t<std::int32_t> ranksOf(const Run& run)
{
    py::array_t<std::int32_t> ranks(static_cast<py::ssize_t>(run.timeline->spans().size()));
    auto* to = ranks.mutable_data();
    for (const Track& track : run.timeline->tracks()) std::fill(to + track.begin, to + track.end, track.rank);
    return ranks;
}

py::array_t<SpanId> edgesTo(const Run& run) // a bit field has no offset
{
    const auto edges = run.timeline->edges();
    py::array_t<SpanId> to(static_cast<py::ssize_t>(edges.size()));
    std::transform(edges.begin(), edges.end(), to.mutable_data(), [](const Edge& edge) { return SpanId(edge.to); });
    return to;
}

py::dict metricsOf(const SharedRun& run)
{
    py::dict metrics;
    for (const Metric& metric : run->metrics)
        metrics[py::str(metric.name)] = view(std::span<const double>(metric.values), py::dtype("<f8"), run);
    return metrics;
}

template <typename Number>
py::dict numbersOf(std::initializer_list<std::pair<const char*, Number>> values)
{
    py::dict out;
    for (const auto& [name, value] : values) out[name] = value;
    return out;
}

py::dict infoOf(const Run& run)
{
    const RunInfo& info = run.info;
    py::dict out = numbersOf<std::int64_t>({{"id", info.id},
                                            {"ranks", info.ranks},
                                            {"stages", info.stages},
                                            {"microbatches", info.microbatches},
                                            {"steps", info.steps},
                                            {"warmup_steps", info.warmupSteps},
                                            {"damaged_blocks", info.damagedBlocks},
                                            {"created_unix_ms", info.createdUnixMs},
                                            {"time_unit", run.timeline->timeUnit()},
                                            {"memory_unit", run.timeline->memoryUnit()},
                                            {"representative_step", run.representativeStep()}});
    out["name"] = info.name;
    out["schedule"] = info.scheduleName;
    out["note"] = info.note;
    out["clock"] = info.clock;
    out["provenance"] = std::string(toText(info.provenance));
    out["state"] = std::string(toText(info.state));
    py::dict configuration;
    for (const auto& [key, value] : run.configuration) configuration[py::str(key)] = value;
    out["configuration"] = configuration;
    return out;
}

SharedRun readRun(const std::string& path, const std::string& idOrName)
{
    const py::gil_scoped_release others;
    const auto file = valueOf(RunFile::open(path, OpenMode::Read));
    return std::make_shared<const Run>(valueOf(file->read(valueOf(file->find(idOrName)))));
}

py::list listRuns(const std::string& path)
{
    py::list runs;
    const auto file = valueOf(RunFile::open(path, OpenMode::Read));
    for (const RunInfo& info : valueOf(file->runs())) runs.append(py::make_tuple(info.id, info.name));
    return runs;
}

} // namespace

} // namespace stagewright

PYBIND11_MODULE(core, module)
{
    using namespace stagewright;
    module.doc() = "Runs as NumPy arrays over the program's memory. Use the package stagewright, which wraps this.";
    static py::exception<Fault> fault(module, "Fault");
    py::register_exception_translator([](std::exception_ptr raised) {
        try {
            if (raised) std::rethrow_exception(raised);
        } catch (const Fault& caught) {
            PyErr_SetObject(fault.ptr(), py::make_tuple(caught.error.message, caught.error.remedy).ptr());
        }
    });
    py::class_<Run, std::shared_ptr<Run>>(module, "Run")
        .def_property_readonly("info", [](const Run& run) { return infoOf(run); })
        .def_property_readonly("tracks", &tracksOf)
        .def_property_readonly("span_ranks", &ranksOf)
        .def_property_readonly("edges_to", &edgesTo)
        .def("name_of",
             [](const Run& run, SpanId span) {
                 if (span >= run.timeline->spans().size()) throw py::index_error("no such span");
                 return run.timeline->nameOf(run.timeline->spans()[span]);
             })
        .def_property_readonly(
            "spans", [](const std::shared_ptr<Run>& run) { return view(run->timeline->spans(), spanRecord(), run); })
        .def_property_readonly(
            "memory",
            [](const std::shared_ptr<Run>& run) { return view(run->timeline->memory(), memoryRecord(), run); })
        .def_property_readonly(
            "edges", [](const std::shared_ptr<Run>& run) { return view(run->timeline->edges(), edgeRecord(), run); })
        .def_property_readonly("metrics", [](const std::shared_ptr<Run>& run) { return metricsOf(run); })
        .def_property_readonly("csv", [](const Run& run) -> py::object {
            if (!run.schedule) return py::none();
            return py::str(valueOf(writeScheduleCsv(*run.schedule)));
        });
    module.def("read", [](const std::string& path, const std::string& run) {
        return std::const_pointer_cast<Run>(readRun(path, run));
    });
    module.def("runs", &listRuns);
    py::list kinds;
    for (std::size_t kind = 0; kind < opKindCount; ++kind)
        kinds.append(std::string(ruleOf(static_cast<OpKind>(kind)).text));
    module.attr("kinds") = py::tuple(kinds);
    py::list categories;
    for (std::size_t one = 0; one < memoryCategoryCount; ++one)
        categories.append(std::string(toText(static_cast<MemoryCategory>(one))));
    module.attr("categories") = py::tuple(categories);
}
