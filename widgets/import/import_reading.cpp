#include "widgets/import/import_reading.h"

#include <algorithm>

#include <QCoreApplication>
#include <QDateTime>
#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <QStandardPaths>

#include "schedules/text/diff.h"
#include "traces/format/format_registry.h"
#include "widgets/literals.h"
#include "widgets/numbers.h"
#include "widgets/runs/runs_model.h"

namespace stagewright {
namespace {

constexpr qint64 mostRuleBytes = 1 << 20;
constexpr std::size_t mostKindsLeftOut = 6;

QString text(const std::string& words) { return QString::fromStdString(words); }

Result<LabelRules> readRules(const QString& path)
{
    QFile file(path);
    if (!file.open(QIODevice::ReadOnly))
        return fail(ErrorCode::Unreadable, "file " + path.toStdString() + ": " + file.errorString().toStdString(),
                    "choose a readable file");
    const QByteArray bytes = file.read(mostRuleBytes + 1);
    if (bytes.size() > mostRuleBytes)
        return fail(ErrorCode::Unreadable,
                    "file " + path.toStdString() + ": more than " + std::to_string(mostRuleBytes) + " bytes of rules",
                    "choose a file with one rule per line");
    auto rules = LabelRules::parse(bytes.toStdString());
    if (!rules)
        return tl::unexpected(std::move(rules.error()).with("file " + QFileInfo(path).fileName().toStdString()));
    return rules;
}

QString formatText(const std::string& format)
{
    const FormatInfo* info = findFormat(format);
    return text(info != nullptr ? std::string(info->title) : format);
}

bool holdsOrder(const std::string& format) // which has no clocks
{
    const FormatInfo* info = findFormat(format);
    return info != nullptr && info->order;
}

QString shortSchedule(const ImportedRun& run)
{
    if (!run.recognised.empty()) return scheduleTitle(run.recognised);
    if (run.run.schedule) return u"custom order"_s;
    return run.ops > 0 ? u"not rebuilt"_s : u"no ops"_s;
}

ImportFact scheduleFact(const ImportedRun& run)
{
    ImportFact fact{
        u"Schedule"_s, {}, u"The order of the step with the most ops, compared with every library schedule"_s, false};
    if (!run.recognised.empty()) {
        fact.value = u"%1, identical to the library's for %2 and %3"_s.arg(
            scheduleTitle(run.recognised), countText(run.run.info.ranks, u"1 rank"_s, u"%L1 ranks"_s),
            countText(run.run.info.microbatches, u"1 microbatch"_s, u"%L1 microbatches"_s));
    } else if (run.run.schedule) {
        fact.value = u"not a library schedule"_s;
        if (const auto nearest = nearestSchedule(*run.run.schedule)) {
            const std::size_t away = nearest->diff.distance();
            fact.value = u"not a library schedule; %1 from %2"_s.arg(
                countText(static_cast<qint64>(away), u"1 op"_s, u"%L1 ops"_s), scheduleTitle(nearest->name));
            if (!nearest->diff.first.empty())
                fact.value += u"; "_s + text(describeFirst(nearest->diff.first.front(), u"here"_s.toStdString(),
                                                           u"there"_s.toStdString()));
        }
    } else if (run.ops > 0) {
        fact.value = u"not rebuilt: %1"_s.arg(text(run.notRebuilt));
        fact.wrong = true;
    } else {
        const std::string names = run.rangeNames ? namesText(run.rangeNames->patterns) : std::string();
        fact.value = names.empty() ? u"none: no range is named"_s
                                   : u"none: no range is named like an op. Ranges: %1. Import, then Analyse › "
                                     "Make a pipeline of ranges"_s.arg(text(names));
        fact.wrong = true;
    }
    return fact;
}

QString leftOutText(const ImportedRun& run)
{
    QStringList kinds;
    for (std::size_t i = 0; i < std::min(run.leftOut.size(), mostKindsLeftOut); ++i)
        kinds << u"%L1 %2"_s.arg(run.leftOut[i].second).arg(text(run.leftOut[i].first));
    if (run.leftOut.size() > mostKindsLeftOut)
        kinds << countText(static_cast<qint64>(run.leftOut.size() - mostKindsLeftOut), u"1 more kind"_s,
                           u"%L1 more kinds"_s);
    return kinds.join(u", "_s);
}

ImportDescription describe(const ImportedRun& run)
{
    ImportDescription out;
    out.schedule = shortSchedule(run);
    const RunInfo& info = run.run.info;
    const auto add = [&](const QString& label, const QString& value, const QString& tooltip, bool wrong = false) {
        out.facts.push_back({label, value, tooltip, wrong});
    };
    QStringList files;
    for (const std::string& file : run.files)
        if (!files.contains(text(file))) files << text(file); // one may hold several ranks
    add(u"Format"_s,
        files.size() == 1 ? u"%1, one file"_s.arg(formatText(run.format))
                          : u"%1, %2 files"_s.arg(formatText(run.format)).arg(files.size()),
        files.mid(0, 32).join(u'\n'));
    QStringList counts{countText(info.ranks, u"1 rank"_s, u"%L1 ranks"_s),
                       countText(info.steps, u"1 step"_s, u"%L1 steps"_s)};
    if (info.stages > 0)
        counts << countText(info.stages, u"1 stage"_s, u"%L1 stages"_s)
               << countText(info.microbatches, u"1 microbatch"_s, u"%L1 microbatches"_s);
    const QString shape = counts.join(u", "_s);
    add(u"Ranks"_s, shape,
        u"Each file or process is a rank. Steps are marked in the trace, or start where the same ops repeat"_s);
    out.facts.push_back(scheduleFact(run));
    if (run.ops > 0)
        add(u"Ops"_s,
            run.dialect.empty() ? u"%L1"_s.arg(run.ops) : u"%L1, named by %2"_s.arg(run.ops).arg(text(run.dialect)),
            u"Ranges that name an op of the schedule"_s);
    if (run.kernels > 0)
        add(u"Kernels"_s,
            u"%1, %L2 under an op, %L3 under a named range"_s
                .arg(countText(static_cast<qint64>(run.kernels), u"1 kernel or copy"_s, u"%L1 kernels and copies"_s))
                .arg(run.kernelsUnderOps)
                .arg(run.kernelsUnderRanges),
            u"Correlated with the call that launched them, and so with the op around it"_s);
    if (run.messages > 0 || run.unpaired > 0)
        add(u"Messages"_s,
            countText(static_cast<qint64>(run.messages), u"1 pair of send and receive"_s,
                      u"%L1 pairs of send and receive"_s) +
                (run.unpaired > 0
                     ? countText(static_cast<qint64>(run.unpaired), u", 1 unmatched"_s, u", %L1 unmatched"_s)
                     : QString()),
            u"Matched by source, destination, tag and sequence number, or else in order"_s, run.unpaired > 0);
    if (run.collectives > 0 || run.collectivesAlone > 0)
        add(u"Collectives"_s,
            run.collectivesAlone == 0
                ? u"%L1 over two or more ranks"_s.arg(run.collectives)
                : u"%L1 over two or more ranks, %L2 of which one rank's side is in the traces"_s.arg(run.collectives)
                      .arg(run.collectivesAlone),
            u"Matched by group, name and sequence number"_s);
    if (!run.clocks.empty())
        add(u"Clocks"_s, text(run.clocks),
            u"Aligned so that no message arrives before it is sent; ± is the remaining uncertainty between the "
            "ranks' clocks"_s,
            run.clockError < 0 && info.ranks > 1 && !holdsOrder(run.format));
    if (!run.leftOut.empty()) add(u"Skipped"_s, leftOutText(run), u"Not imported, counted by kind"_s);
    if (run.damaged > 0)
        add(u"Damaged"_s, u"%L1 of %L2 events could not be read"_s.arg(run.damaged).arg(run.events + run.damaged),
            u"They were skipped; reading continued after them"_s, true);
    for (const std::string& note : run.notes)
        if (run.damaged == 0 || note != run.damageNote()) out.notes << text(note);
    return out;
}

QString targetOf(const QStringList& words, const ImportResult& result)
{
    const QFileInfo first(words.front());
    QString folder = first.absolutePath(), name = text(result.runs.front().run.info.name);
    if (words.size() == 1 && first.isDir()) { // beside the folder, which may be read again
        const QDir dir(first.absoluteFilePath());
        name = dir.dirName();
        folder = QFileInfo(QDir::cleanPath(dir.absolutePath())).absolutePath();
    } else if (!result.runs.front().files.empty()) {
        folder = QFileInfo(text(result.runs.front().files.front())).absolutePath();
    }
    if (!QFileInfo(folder).isWritable()) folder = QStandardPaths::writableLocation(QStandardPaths::DocumentsLocation);
    if (name.isEmpty() || name == "/"_L1) name = u"imported"_s;
    return QDir(folder).filePath(name.replace(u'/', u'-') + u".stagewright"_s);
}

} // namespace

ImportAnswer readTraces(const ImportQuestion& question, const Progress& progress)
{
    ImportAnswer answer;
    ImportOptions options;
    options.hostOps = question.hostOps;
    if (!question.rulesFile.isEmpty()) {
        auto rules = readRules(question.rulesFile);
        if (!rules) {
            answer.error = std::move(rules.error());
            answer.ofRules = true;
            return answer;
        }
        options.rules = std::move(*rules);
    }
    std::vector<std::string> words;
    for (const QString& word : question.words) words.push_back(word.toStdString());
    auto result = importTraces(words, options, progress);
    if (!result) {
        answer.error = std::move(result.error());
        return answer;
    }
    auto reading = std::make_shared<ImportReading>();
    for (ImportedRun& run : result->runs) {
        if (progress.cancelled()) {
            answer.error = Error{ErrorCode::Cancelled, "importing was cancelled", {}};
            return answer;
        }
        if (run.run.info.createdUnixMs == 0) run.run.info.createdUnixMs = QDateTime::currentMSecsSinceEpoch();
        reading->descriptions.push_back(describe(run));
    }
    for (const RefusedFile& refused : result->refused)
        reading->refused << (refused.error.remedy.empty()
                                 ? text(refused.error.message)
                                 : text(refused.error.message) + u"; "_s + text(refused.error.remedy));
    reading->target = targetOf(question.words, *result);
    reading->result = std::move(*result);
    answer.reading = std::move(reading);
    return answer;
}

bool isTrace(const QString& path) { return QFileInfo(path).isDir() || holdsTrace(path.toStdString()); }

QStringList readPatterns()
{
    QStringList patterns;
    for (const std::string_view suffix : readSuffixes())
        patterns << u'*' + QString::fromUtf8(suffix.data(), static_cast<qsizetype>(suffix.size()));
    patterns.removeDuplicates();
    return patterns;
}

} // namespace stagewright
