// Shared by the tests of importing other tools' traces. Recorded traces (STAGEWRIGHT_SHARED) are elsewhere: tests skip
// where they are absent.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <QString>
#include <QTemporaryDir>

#include "traces/import/import.h"
#include "traces/import/kineto/kineto_json.h"

namespace stagewright::import_rig {

// JSON with ' for ": moc does not follow raw strings.
inline std::string quoted(std::string text)
{
    std::replace(text.begin(), text.end(), '\'', '"');
    return text;
}

inline std::string dataFile(const char* name)
{
    return (std::filesystem::path(STAGEWRIGHT_SOURCE_DIR) / "tests/data/traces" / name).string();
}

inline std::filesystem::path sharedFolder(const char* name)
{
    return std::filesystem::path(qEnvironmentVariable("STAGEWRIGHT_SHARED").toStdString()) / "fixtures" / name;
}

inline std::string textOf(const std::filesystem::path& path)
{
    std::ifstream in(path, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
}

inline ImportResult imported(const std::vector<std::string>& words, const ImportOptions& options = {})
{
    auto result = importTraces(words, options);
    if (!result) qWarning("%s", result.error().message.c_str());
    return result ? std::move(*result) : ImportResult{};
}

inline Result<ForeignFile> readText(const std::string& text, const ImportOptions& options = {})
{
    const auto source = byteSourceOf(text);
    return readJsonTrace(*source, "text_rank0.json", options, {});
}

// One run of a JSON text, read as a file.
inline ImportResult importedText(const std::string& text, const char* name = "trace_rank0.json")
{
    QTemporaryDir folder;
    const std::string path = folder.filePath(QString::fromLatin1(name)).toStdString();
    std::ofstream(path, std::ios::binary) << text;
    return imported({path});
}

inline std::size_t countLane(const Timeline& timeline, Lane lane)
{
    std::size_t count = 0;
    for (const Track& track : timeline.tracks())
        if (track.lane == lane) count += track.end - track.begin;
    return count;
}

inline std::size_t countEdges(const Timeline& timeline, EdgeKind kind)
{
    return static_cast<std::size_t>(std::count_if(timeline.edges().begin(), timeline.edges().end(),
                                                  [kind](const Edge& edge) { return edge.kind == kind; }));
}

inline bool notesSay(const ImportedRun& run, const char* what)
{
    return std::any_of(run.notes.begin(), run.notes.end(),
                       [what](const std::string& note) { return note.find(what) != std::string::npos; });
}

} // namespace stagewright::import_rig
