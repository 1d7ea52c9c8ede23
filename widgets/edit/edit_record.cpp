#include "widgets/edit/edit_record.h"

#include <map>

#include <QStringList>

#include "schedules/text/cost_json.h"
#include "schedules/text/csv.h"
#include "widgets/edit/text_sync.h"
#include "widgets/literals.h"

namespace stagewright {
namespace {

constexpr std::string_view heading = "stagewright-edit 1\n";

std::string escaped(const QString& text)
{
    return QString(text).replace(u'\\', "\\\\"_L1).replace(u'\n', "\\n"_L1).toStdString();
}

QString unescaped(const QString& text)
{
    QString out;
    for (qsizetype i = 0; i < text.size(); ++i) {
        const bool escape = text[i] == u'\\' && i + 1 < text.size();
        if (escape) ++i;
        out += escape && text[i] == u'n' ? u'\n' : text[i];
    }
    return out;
}

// "0@0+3@4,1@0": by stage its copies, rank@first microbatch.
std::string placementText(const Placement& placement)
{
    std::string out;
    for (int s = 0; s < placement.stages(); ++s) {
        if (s > 0) out += ',';
        bool first = true;
        for (const auto& copy : placement.copiesOf(s)) {
            if (!first) out += '+';
            first = false;
            out += std::to_string(copy.rank) + '@' + std::to_string(copy.firstMicrobatch);
        }
    }
    return out;
}

Result<Placement> placementOfText(const QString& text, int ranks)
{
    std::vector<std::vector<Placement::Copy>> table;
    for (const QString& stage : text.split(u',')) {
        auto& copies = table.emplace_back();
        for (const QString& copy : stage.split(u'+')) {
            bool rankOk = false, firstOk = false;
            const int rank = copy.section(u'@', 0, 0).toInt(&rankOk), first = copy.section(u'@', 1).toInt(&firstOk);
            if (!rankOk || !firstOk || rank < 0 || rank >= ranks || first < 0)
                return fail(ErrorCode::Unreadable,
                            "autosaved edit: placement '" + copy.toStdString() + "' is not rank@microbatch");
            copies.push_back({first, rank});
        }
    }
    return Placement::of(std::move(table));
}

std::string frameText(const Schedule& schedule)
{
    return std::to_string(schedule.ranks) + ' ' + std::to_string(schedule.stages) + ' ' +
           std::to_string(schedule.microbatches) + ' ' + placementText(schedule.placement) + ' ' +
           escaped(QString::fromStdString(schedule.name));
}

Result<Schedule> frameOfText(const QString& text)
{
    Schedule out;
    const QStringList words = text.split(u' ');
    if (words.size() < 4)
        return fail(ErrorCode::Unreadable,
                    "autosaved edit: the shape has " + std::to_string(words.size()) + " words, 4 are needed");
    out.ranks = words[0].toInt();
    out.stages = words[1].toInt();
    out.microbatches = words[2].toInt();
    if (out.ranks < 1 || out.ranks > 65535 || out.stages < 1 || out.microbatches < 1)
        return fail(ErrorCode::Unreadable, "autosaved edit: " + words.mid(0, 3).join(u' ').toStdString() +
                                               " are not ranks, stages and microbatches");
    STAGEWRIGHT_TRY(auto placement, placementOfText(words[3], out.ranks));
    if (placement.stages() != out.stages)
        return fail(ErrorCode::Unreadable, "autosaved edit: the placement has " + std::to_string(placement.stages()) +
                                               " stages of " + std::to_string(out.stages));
    out.placement = std::move(placement);
    out.name = unescaped(QStringList(words.mid(4)).join(u' ')).toStdString();
    out.order.resize(static_cast<std::size_t>(out.ranks));
    out.paired.resize(out.order.size());
    return out;
}

} // namespace

Result<std::string> writeEditRecord(const EditRecord& record)
{
    auto original = writeScheduleCsv(record.original), edited = writeScheduleCsv(record.edited);
    if (!original) return original;
    if (!edited) return edited;
    const std::string costs = writeCostsJson(record.costs);
    std::string out(heading);
    auto line = [&](const char* key, const std::string& value) { out += std::string(key) + '=' + value + '\n'; };
    line("when", escaped(record.when));
    line("source", escaped(record.source));
    line("file", escaped(record.file));
    line("run", std::to_string(record.run));
    line("changes", std::to_string(record.changes));
    line("original", frameText(record.original));
    line("edited", frameText(record.edited));
    line("bytes",
         std::to_string(original->size()) + ' ' + std::to_string(edited->size()) + ' ' + std::to_string(costs.size()));
    out += '\n';
    return out + *original + *edited + costs;
}

Result<EditRecord> readEditRecord(std::string_view text)
{
    if (!text.starts_with(heading))
        return fail(ErrorCode::Unreadable, "autosaved edit: the first line is not 'stagewright-edit 1'");
    text.remove_prefix(heading.size());
    std::map<QString, QString> values;
    while (true) {
        const std::size_t end = text.find('\n');
        if (end == std::string_view::npos)
            return fail(ErrorCode::Unreadable, "autosaved edit: it ends within its header");
        const QString line = QString::fromUtf8(text.data(), static_cast<qsizetype>(end));
        text.remove_prefix(end + 1);
        if (line.isEmpty()) break;
        values[line.section(u'=', 0, 0)] = line.section(u'=', 1);
    }
    EditRecord out;
    out.when = unescaped(values[u"when"_s]);
    out.source = unescaped(values[u"source"_s]);
    out.file = unescaped(values[u"file"_s]);
    out.run = values[u"run"_s].toLongLong();
    out.changes = values[u"changes"_s].toInt();
    const QStringList sizes = values[u"bytes"_s].split(u' ');
    std::size_t bytes[3] = {};
    std::size_t sum = 0;
    for (int i = 0; i < 3; ++i) {
        bytes[i] = sizes.value(i).toULongLong();
        if (bytes[i] > text.size())
            return fail(ErrorCode::Unreadable, "autosaved edit: " + std::to_string(text.size()) + " bytes, but " +
                                                   std::to_string(bytes[i]) + " were expected");
        sum += bytes[i];
    }
    if (sizes.size() != 3 || sum != text.size())
        return fail(ErrorCode::Unreadable, "autosaved edit: " + std::to_string(text.size()) + " bytes, but " +
                                               std::to_string(sum) + " were expected");
    auto schedule = [&](const char* key, std::size_t from, std::size_t size) -> Result<Schedule> {
        auto frame = frameOfText(values[QString::fromLatin1(key)]);
        if (!frame) return frame;
        return readTypedOrder(QString::fromUtf8(text.data() + from, static_cast<qsizetype>(size)), *frame).schedule;
    };
    STAGEWRIGHT_TRY(auto original, schedule("original", 0, bytes[0]));
    STAGEWRIGHT_TRY(auto edited, schedule("edited", bytes[0], bytes[1]));
    STAGEWRIGHT_TRY(auto costs, readCostsJson(std::string(text.substr(bytes[0] + bytes[1]))));
    out.original = std::move(original);
    out.edited = std::move(edited);
    out.costs = std::move(costs);
    return out;
}

} // namespace stagewright
