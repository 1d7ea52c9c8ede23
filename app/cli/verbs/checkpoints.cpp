#include "app/cli/verbs/checkpoints.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <filesystem>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "app/cli/text/figures.h"
#include "schedules/base/folder.h"
#include "schedules/base/text.h"
#include "schedules/model/kinds.h"
#include "schedules/model/mesh.h"
#include "traces/format/atomic_file.h"
#include "traces/store/schedule_text.h"

namespace stagewright {

namespace {

constexpr std::string_view ending = ".safetensors";
constexpr const char* listsKey = "schedule_lists"; // by content

const std::string* valueOf(const SavedFacts& facts, std::string_view key)
{
    const auto found = std::find_if(facts.begin(), facts.end(), [key](const auto& fact) { return fact.first == key; });
    return found == facts.end() ? nullptr : &found->second;
}

std::string textOr(const std::string* text, const char* other) { return text != nullptr ? *text : other; }

// The ops that add to the gradients of each layer, in their order, by the ranks that hold it.
using Additions = std::vector<std::vector<std::vector<Op>>>;
std::optional<Additions> additionsOf(const Schedule& schedule, const std::string* stageLayers)
{
    const auto layers = stageLayers != nullptr ? wholesOf(*stageLayers) : std::nullopt;
    if (!layers || layers->size() != static_cast<std::size_t>(schedule.stages)) return std::nullopt;
    Additions all;
    const auto add = [&](int stage) {
        auto& ofLayer = all.emplace_back();
        for (const int rank : holdersOf(schedule.placement, stage)) {
            auto& ofRank = ofLayer.emplace_back();
            for (Op op : schedule.order[static_cast<std::size_t>(rank)]) {
                if (op.stage != stage || !makesWeightGradient(op.kind)) continue;
                op = asWeightGrad(op);
                op.stage = 0;
                ofRank.push_back(op);
            }
        }
    };
    add(0); // what is before the blocks
    for (int stage = 0; stage < schedule.stages; ++stage)
        for (int layer = 0; layer < (*layers)[static_cast<std::size_t>(stage)]; ++layer) add(stage);
    add(schedule.stages - 1);
    return all;
}

} // namespace

Checkpoints::Checkpoints(const std::string& runFile, int keep) : m_keep(static_cast<std::size_t>(keep))
{
    const std::filesystem::path path(runFile);
    m_folder = path.has_parent_path() ? path.parent_path().string() : ".";
    m_stem = (path.extension() == ".stagewright" ? path.stem() : path.filename()).string() + ".step";
}

Checkpoints::~Checkpoints() { wait(); }

Nanos Checkpoints::now()
{
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

void Checkpoints::wait()
{
    if (m_writer.joinable()) m_writer.join();
}

std::vector<std::pair<int, std::string>> Checkpoints::present() const
{
    std::vector<std::pair<int, std::string>> found;
    for (const std::string& name : namesIn(m_folder)) {
        if (!name.starts_with(m_stem) || !name.ends_with(ending) || name.size() < m_stem.size() + ending.size())
            continue;
        const auto step =
            wholeOf<int>(std::string_view(name).substr(m_stem.size(), name.size() - m_stem.size() - ending.size()));
        if (step) found.emplace_back(*step, name);
    }
    std::sort(found.rbegin(), found.rend());
    return found;
}

Result<void> Checkpoints::begin(bool resumes) const
{
    for (const std::string& name : namesIn(m_folder))
        if (const std::size_t end = name.find(ending); name.starts_with(m_stem) && end != std::string::npos)
            removeLeftParts(m_folder + "/" + name.substr(0, end + ending.size()));
    const auto there = present();
    if (resumes || there.empty()) return {};
    return fail(ErrorCode::Usage,
                fmt::format("{}/{}: it is a checkpoint of an earlier training, and this one would be mixed with it",
                            m_folder, there.front().second),
                "go on from it with --resume, move it away, or give another -o");
}

void Checkpoints::removeOld(int step) const
{
    std::size_t kept = 0;
    for (const auto& [other, name] : present()) {
        if (other > step || ++kept <= m_keep) continue; // later ones are of the training that this one goes on from
        std::error_code ignored;
        std::filesystem::remove(m_folder + "/" + name, ignored);
    }
}

void Checkpoints::write(SavedTraining saved, Nanos begin)
{
    Ended ended;
    const std::string* step = saved.fact("step");
    ended.step = step != nullptr ? wholeOf<int>(*step).value_or(0) : 0;
    ended.file = fmt::format("{}{}{}{}", m_folder == "." ? "" : m_folder + "/", m_stem, ended.step, ending);
    const Nanos copied = now();
    ended.pause = copied - begin;
    m_writer = std::thread([this, saved = std::move(saved), ended = std::move(ended), copied]() mutable {
        try {
            auto written = writeFileAtomically(ended.file, [&saved](const Sink& out) -> Result<void> {
                saved.write(out); // the file reports a failed write
                return {};
            });
            if (written)
                removeOld(ended.step);
            else
                ended.error = std::move(written.error());
        } catch (const std::exception& e) {
            ended.error = Error{ErrorCode::Failed, fmt::format("file {}: {}", ended.file, e.what()), {}};
        }
        ended.written = now() - copied;
        const std::lock_guard lock(m_mutex);
        m_ended.push_back(std::move(ended));
    });
}

std::vector<Checkpoints::Ended> Checkpoints::ended()
{
    const std::lock_guard lock(m_mutex);
    return std::exchange(m_ended, {});
}

SavedTraining withLists(SavedTraining saved, const Schedule& lists)
{
    saved.facts.emplace_back(listsKey, writeScheduleText(lists));
    return saved;
}

std::string resumeText(const SavedFile& from, const Schedule& lists, const SavedFacts& facts)
{
    const auto differs = [&](const char* key) { return textOr(from.fact(key), "") != textOr(valueOf(facts, key), ""); };
    const auto said = [&](const std::string& why) {
        return fmt::format("it goes on behind step {} of {}, which {} trained on {}; {}", from.step(), from.path(),
                           textOr(from.fact("schedule"), "another schedule"),
                           plural(wholeOf<int>(textOr(from.fact("ranks"), "1")).value_or(1), "rank"), why);
    };
    const std::string* text = from.fact(listsKey);
    const auto before = text != nullptr ? readScheduleText(*text)
                                        : Result<Schedule>(fail(ErrorCode::Unreadable, "its lists are not in it"));
    const bool same = before && before->order == lists.order && !differs("stage_layers") && !differs("replicas");
    if (lists.weights != WeightRule::Synchronous && !same)
        return said("weights lag by the order of ops, so losses are others than there");
    constexpr const char* close = "losses are equal but for rounding: ";
    for (const char* key : {"backend", "precision", "products", "kernels"})
        if (differs(key))
            return said(fmt::format("{}{} was {}, and is {}", close, key, textOr(from.fact(key), "another one"),
                                    textOr(valueOf(facts, key), "another one")));
    if (differs("replicas")) return said(fmt::format("{}gradients are summed over other replicas", close));
    if (!same) {
        const auto was = before ? additionsOf(*before, from.fact("stage_layers")) : std::nullopt;
        const auto is = additionsOf(lists, valueOf(facts, "stage_layers"));
        if (!was || !is || *was != *is || differs("slice_tokens") || differs("microbatch_size"))
            return said(fmt::format("{}gradients are summed in another order", close));
        if (differs("stage_layers") && textOr(valueOf(facts, "clip_norm"), "none") != "none")
            return said("gradients are the same bit for bit, their norm but for rounding, as stages are others");
    }
    return fmt::format("it goes on behind step {} of {}: bit for bit as that training would", from.step(), from.path());
}

} // namespace stagewright
