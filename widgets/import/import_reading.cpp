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
#include "widgets/numbers.h"
#include "widgets/runs/runs_model.h"

namespace stagewright {
namespace {

struct Text {
    Q_DECLARE_TR_FUNCTIONS(stagewright::ImportReading)
};

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
    if (run.run.schedule) return Text::tr("custom order");
    return run.ops > 0 ? Text::tr("not rebuilt") : Text::tr("no ops");
}

ImportFact scheduleFact(const ImportedRun& run)
{
    ImportFact fact{Text::tr("Schedule"),
                    {},
                    Text::tr("The order of the step with the most ops, compared with every library schedule"),
                    false};
    if (!run.recognised.empty()) {
        fact.value =
            Text::tr("%1, identical to the library's for %2 and %3")
                .arg(scheduleTitle(run.recognised),
                     countText(run.run.info.ranks, Text::tr("1 rank"), Text::tr("%L1 ranks")),
                     countText(run.run.info.microbatches, Text::tr("1 microbatch"), Text::tr("%L1 microbatches")));
    } else if (run.run.schedule) {
        fact.value = Text::tr("not a library schedule");
        if (const auto nearest = nearestSchedule(*run.run.schedule)) {
            const std::size_t away = nearest->diff.distance();
            fact.value = Text::tr("not a library schedule; %1 from %2")
                             .arg(countText(static_cast<qint64>(away), Text::tr("1 op"), Text::tr("%L1 ops")),
                                  scheduleTitle(nearest->name));
            if (!nearest->diff.first.empty())
                fact.value += QStringLiteral("; ") +
                              text(describeFirst(nearest->diff.first.front(), Text::tr("here").toStdString(),
                                                 Text::tr("there").toStdString()));
        }
    } else if (run.ops > 0) {
        fact.value = Text::tr("not rebuilt: %1").arg(text(run.notRebuilt));
        fact.wrong = true;
    } else {
        const std::string names = run.rangeNames ? namesText(run.rangeNames->patterns) : std::string();
        fact.value = names.empty() ? Text::tr("none: no range is named")
                                   : Text::tr("none: no range is named like an op. Ranges: %1. Import, then Analyse ▸ "
                                              "Make a pipeline of ranges")
                                         .arg(text(names));
        fact.wrong = true;
    }
    return fact;
}

QString leftOutText(const ImportedRun& run)
{
    QStringList kinds;
    for (std::size_t i = 0; i < std::min(run.leftOut.size(), mostKindsLeftOut); ++i)
        kinds << Text::tr("%L1 %2").arg(run.leftOut[i].second).arg(text(run.leftOut[i].first));
    if (run.leftOut.size() > mostKindsLeftOut)
        kinds << countText(static_cast<qint64>(run.leftOut.size() - mostKindsLeftOut), Text::tr("1 more kind"),
                           Text::tr("%L1 more kinds"));
    return kinds.join(QStringLiteral(", "));
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
    add(Text::tr("Format"),
        files.size() == 1 ? Text::tr("%1, one file").arg(formatText(run.format))
                          : Text::tr("%1, %2 files").arg(formatText(run.format)).arg(files.size()),
        files.mid(0, 32).join(QLatin1Char('\n')));
    QStringList counts{countText(info.ranks, Text::tr("1 rank"), Text::tr("%L1 ranks")),
                       countText(info.steps, Text::tr("1 step"), Text::tr("%L1 steps"))};
    if (info.stages > 0)
        counts << countText(info.stages, Text::tr("1 stage"), Text::tr("%L1 stages"))
               << countText(info.microbatches, Text::tr("1 microbatch"), Text::tr("%L1 microbatches"));
    const QString shape = counts.join(QStringLiteral(", "));
    add(Text::tr("Ranks"), shape,
        Text::tr("Each file or process is a rank. Steps are marked in the trace, or start where the same ops repeat"));
    out.facts.push_back(scheduleFact(run));
    if (run.ops > 0)
        add(Text::tr("Ops"),
            run.dialect.empty() ? Text::tr("%L1").arg(run.ops)
                                : Text::tr("%L1, named by %2").arg(run.ops).arg(text(run.dialect)),
            Text::tr("Ranges that name an op of the schedule"));
    if (run.kernels > 0)
        add(Text::tr("Kernels"),
            Text::tr("%1, %L2 under an op, %L3 under a named range")
                .arg(countText(static_cast<qint64>(run.kernels), Text::tr("1 kernel or copy"),
                               Text::tr("%L1 kernels and copies")))
                .arg(run.kernelsUnderOps)
                .arg(run.kernelsUnderRanges),
            Text::tr("Correlated with the call that launched them, and so with the op around it"));
    if (run.messages > 0 || run.unpaired > 0)
        add(Text::tr("Messages"),
            countText(static_cast<qint64>(run.messages), Text::tr("1 pair of send and receive"),
                      Text::tr("%L1 pairs of send and receive")) +
                (run.unpaired > 0 ? countText(static_cast<qint64>(run.unpaired), Text::tr(", 1 unmatched"),
                                              Text::tr(", %L1 unmatched"))
                                  : QString()),
            Text::tr("Matched by source, destination, tag and sequence number, or else in order"), run.unpaired > 0);
    if (run.collectives > 0 || run.collectivesAlone > 0)
        add(Text::tr("Collectives"),
            run.collectivesAlone == 0
                ? Text::tr("%L1 over two or more ranks").arg(run.collectives)
                : Text::tr("%L1 over two or more ranks, %L2 of which one rank's side is in the traces")
                      .arg(run.collectives)
                      .arg(run.collectivesAlone),
            Text::tr("Matched by group, name and sequence number"));
    if (!run.clocks.empty())
        add(Text::tr("Clocks"), text(run.clocks),
            Text::tr("Aligned so that no message arrives before it is sent; ± is the remaining uncertainty between the "
                     "ranks' clocks"),
            run.clockError < 0 && info.ranks > 1 && !holdsOrder(run.format));
    if (!run.leftOut.empty()) add(Text::tr("Skipped"), leftOutText(run), Text::tr("Not imported, counted by kind"));
    if (run.damaged > 0)
        add(Text::tr("Damaged"),
            Text::tr("%L1 of %L2 events could not be read").arg(run.damaged).arg(run.events + run.damaged),
            Text::tr("They were skipped; reading continued after them"), true);
    for (const std::string& note : run.notes) out.notes << text(note);
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
    if (name.isEmpty() || name == QLatin1String("/")) name = Text::tr("imported");
    return QDir(folder).filePath(name.replace(QLatin1Char('/'), QLatin1Char('-')) + QStringLiteral(".stagewright"));
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
                                 : text(refused.error.message) + QStringLiteral("; ") + text(refused.error.remedy));
    reading->target = targetOf(question.words, *result);
    reading->result = std::move(*result);
    answer.reading = std::move(reading);
    return answer;
}

bool isTrace(const QString& path)
{
    const QFileInfo info(path);
    if (info.isDir()) return true;
    const QString suffix = info.suffix().toLower();
    return suffix == QLatin1String("json") || suffix == QLatin1String("gz") || suffix == QLatin1String("sqlite") ||
           suffix == QLatin1String("zip") || suffix == QLatin1String("tar") || suffix == QLatin1String("tgz") ||
           suffix == QLatin1String("zst") || suffix == QLatin1String("xz") || suffix == QLatin1String("bz2") ||
           suffix == QLatin1String("lz4");
}

} // namespace stagewright
