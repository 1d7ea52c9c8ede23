#include "app/ui/program/command_line.h"

#include <QFile>
#include <QUrl>

#include "app/ui/shell/features.h"
#include "schedules/plan/what_if.h"
#include "traces/format/format_registry.h"
#include "traces/run/run_link.h"
#include "widgets/literals.h"

namespace stagewright {
namespace {

QStringList shownNames()
{
    QStringList names;
    for (const ShowEntry& entry : allShown()) names << QLatin1String(entry.name);
    return names;
}

// A word that names a file: a path, or what the desktop hands over, file:… or stagewright:….
QString takeFile(CommandLine& line, const QString& word)
{
    if (word.startsWith(QLatin1String(runLinkScheme.data(), runLinkScheme.size()))) {
        const auto link = parseRunLink(word.toStdString());
        if (!link)
            return u"%1; %2"_s.arg(QString::fromStdString(link.error().message),
                                   QString::fromStdString(link.error().remedy));
        line.files << QString::fromStdString(link->file);
        line.run = QString::fromStdString(link->run);
        line.step = link->step - 1;
        line.select = QString::fromStdString(link->op);
        line.range = link->range;
    } else if (word.startsWith("file:"_L1) && !QFile::exists(word)) {
        line.files << QUrl(word).toLocalFile();
    } else {
        line.files << word;
    }
    return {};
}

// ".pftrace, .perfetto-trace, .json …": of files that open in the import dialog, without packed ones.
QString traceSuffixes()
{
    QStringList suffixes;
    for (const FormatInfo* format : allFormats())
        for (const std::string_view suffix : format->suffixes)
            if (format->read != nullptr && holdsTrace(suffix)) suffixes << QString::fromUtf8(suffix);
    suffixes.removeDuplicates();
    return suffixes.join(u", "_s);
}

} // namespace

QString helpText()
{
    return QStringLiteral(R"(Usage: stagewright-ui [FILE…] [options]

Opens run files (.stagewright), schedules (.csv), building blocks (.block) and lessons (.md) in
the window. Traces of other tools open in the import dialog: folders, archives and files
(%2), plain or compressed. A link such as
stagewright:FILE#run=2&step=9&op=3B1&range=FROM-TO (in ns) opens at its place;
'report --link' prints them, and Edit › Copy link copies one.

  --run A                 show this run (id or name) of the first file
  --step N                show this step, from 1 (default: the measured one with the median time)
  --lesson NAME           start a lesson (name, number or file); "shelf" shows all lessons
  --lesson-page N         open the lesson at this page, from 1
  --beat N                play to beat N of that step, from 1
  --select "QUERY"        select the first matching op, e.g. "rank:2 mb:5 B"
  --baseline RUN          show every figure's change against this run of the first file
  --compare A B [C [D]]   show two to four runs of the first file, one above the other
  --show %1
                          also open that part of the window
  --what-if CHANGES       simulate the run with changes, as in simulate --what-if: "B*0.5,link*2"
  --schedule NAME         library schedule for --show new and --show block, planner for --show planners
  --theme light|dark|high-contrast  default: the last choice, or the system's theme
  --no-runs-list          hide the list at the left
  --no-memory             hide the memory charts under the timeline

  --screenshot OUT.png    draw the window without a display and exit
  --size WxH              window size for the screenshot (default 1600x1000)
  --export png|svg|pdf -o OUT
                          draw only the timeline and the memory, and exit;
                          as wide as the timeline in a window of --size
  --style screen|paper    screen: the theme's colours; paper: white, for print,
                          with sizes in millimetres and points
  --width MM              width on paper: 84 for one column, 178
                          (default) for two
  --text PT               text size (default 7)
  --hatched               kinds also differ by hatch, for grey print
  --parts timeline,memory parts of the picture (default: as on screen)
  --no-caption, --no-legend

  --version, --help

Exit codes: 0 done, 2 wrong usage, 3 input unreadable or damaged, 5 the picture could not be written.
)")
        .arg(shownNames().join(u'|'), traceSuffixes());
}

CommandLine parseCommandLine(const QStringList& arguments)
{
    CommandLine line;
    auto wrong = [&](const QString& text) {
        if (line.fault.isEmpty()) line.fault = text; // without a text there is none
    };
    for (int i = 0; i < arguments.size(); ++i) {
        QString word = arguments[i];
        QString given;
        bool has = false;
        if (word.startsWith("--"_L1) && word.contains(u'=')) {
            given = word.section(u'=', 1);
            word = word.section(u'=', 0, 0);
            has = true;
        }
        auto value = [&]() -> QString {
            if (has) return given;
            if (i + 1 >= arguments.size()) {
                wrong(u"%1: a value is missing"_s.arg(word));
                return {};
            }
            return arguments[++i];
        };
        if (word == "--help"_L1 || word == "-h"_L1) {
            line.help = true;
        } else if (word == "--version"_L1) {
            line.version = true;
        } else if (word == "--screenshot"_L1) {
            line.screenshot = value();
        } else if (word == "--export"_L1) {
            line.exportKind = value().toLower();
            if (!QStringList{"png", "svg", "pdf"}.contains(line.exportKind))
                wrong(u"--export %1: use png, svg or pdf"_s.arg(line.exportKind));
        } else if (word == "-o"_L1 || word == "--output"_L1) {
            line.output = value();
        } else if (word == "--size"_L1) {
            const QString text = value();
            bool wide = false;
            bool high = false;
            line.size = {text.section(u'x', 0, 0).toInt(&wide), text.section(u'x', 1).toInt(&high)};
            if (!wide || !high || line.size.width() < 320 || line.size.height() < 240 || line.size.width() > 16000 ||
                line.size.height() > 16000)
                wrong(u"--size %1: give WIDTHxHEIGHT, from 320x240 to 16000x16000"_s.arg(text));
        } else if (word == "--theme"_L1) {
            const QString text = value();
            const auto place = QStringList{"light", "dark", "high-contrast"}.indexOf(text);
            if (place < 0)
                wrong(u"--theme %1: use light, dark or high-contrast"_s.arg(text));
            else
                line.theme = static_cast<ThemeName>(place);
        } else if (word == "--run"_L1) {
            line.run = value();
        } else if (word == "--baseline"_L1) {
            line.baseline = value();
        } else if (word == "--select"_L1) {
            line.select = value();
        } else if (word == "--step"_L1) {
            bool ok = false;
            const QString text = value();
            line.step = text.toInt(&ok) - 1;
            if (!ok || line.step < 0) wrong(u"--step %1: give a number from 1"_s.arg(text));
        } else if (word == "--lesson"_L1) {
            line.lesson = value();
        } else if (word == "--lesson-page"_L1) {
            bool ok = false;
            const QString text = value();
            line.lessonPage = text.toInt(&ok) - 1;
            if (!ok || line.lessonPage < 0) wrong(u"--lesson-page %1: give a number from 1"_s.arg(text));
        } else if (word == "--beat"_L1) {
            bool ok = false;
            const QString text = value();
            line.beat = text.toInt(&ok) - 1;
            if (!ok || line.beat < 0) wrong(u"--beat %1: give a number from 1"_s.arg(text));
        } else if (word == "--compare"_L1) {
            const QString first = value();
            has = false;
            line.compare = {first, value()};
            while (line.compare.size() < 4 && i + 1 < arguments.size() && !arguments[i + 1].startsWith(u'-') &&
                   !arguments[i + 1].endsWith(".stagewright"_L1) && !arguments[i + 1].endsWith(".csv"_L1))
                line.compare << arguments[++i];
        } else if (word == "--what-if"_L1) {
            line.whatIf = value();
            if (const auto changes = parseWhatIf(line.whatIf.toStdString()); !changes)
                wrong(u"--%1; %2"_s.arg(QString::fromStdString(changes.error().message),
                                        QString::fromStdString(changes.error().remedy)));
        } else if (word == "--schedule"_L1) {
            line.schedule = value();
        } else if (word == "--show"_L1) {
            line.show = value();
            const QStringList parts = shownNames();
            if (!parts.contains(line.show))
                wrong(u"--show %1: use %2 or %3"_s.arg(line.show, parts.mid(0, parts.size() - 1).join(u", "_s),
                                                       parts.last()));
        } else if (word == "--no-runs-list"_L1) {
            line.hideRuns = true;
        } else if (word == "--no-memory"_L1) {
            line.hideMemory = true;
        } else if (word == "--style"_L1) {
            const QString text = value();
            if (text != "screen"_L1 && text != "paper"_L1) wrong(u"--style %1: use screen or paper"_s.arg(text));
            line.picture.paper = text == "paper"_L1;
        } else if (word == "--width"_L1 || word == "--text"_L1) {
            const bool width = word == "--width"_L1;
            const double low = width ? 40 : 4, high = width ? 1200 : 16;
            QString text = value();
            bool ok = false;
            const double number = QString(text).remove(width ? u"mm"_s : u"pt"_s).trimmed().toDouble(&ok);
            if (!ok || number < low || number > high)
                wrong(u"%1 %2: give %3 from %4 to %5"_s.arg(word, text, width ? u"millimetres"_s : u"points"_s)
                          .arg(low)
                          .arg(high));
            (width ? line.picture.millimetres : line.picture.points) = number;
        } else if (word == "--hatched"_L1) {
            line.picture.hatched = true;
        } else if (word == "--no-caption"_L1) {
            line.picture.caption = false;
        } else if (word == "--no-legend"_L1) {
            line.picture.legend = false;
        } else if (word == "--parts"_L1) {
            line.picture.parts = value().toLower().split(u',', Qt::SkipEmptyParts);
            if (line.picture.parts.isEmpty()) wrong(u"--parts: give timeline, memory or both"_s);
            for (const QString& part : line.picture.parts)
                if (part != "timeline"_L1 && part != "memory"_L1)
                    wrong(u"--parts %1: use timeline, memory"_s.arg(part));
        } else if (word.startsWith(u'-') && word.size() > 1) {
            wrong(u"%1: unknown option; --help lists them"_s.arg(word));
        } else {
            wrong(takeFile(line, word));
        }
    }
    const bool sizes = line.picture.millimetres > 0 || line.picture.points > 0 || line.picture.hatched;
    if (sizes && !line.picture.paper) wrong(u"--width, --text and --hatched need --style paper"_s);
    if (!line.exportKind.isEmpty() && line.output.isEmpty()) wrong(u"--export: name the output file with -o FILE"_s);
    if (!line.exportKind.isEmpty() && line.files.isEmpty()) wrong(u"--export: name the file to draw"_s);
    if ((!line.run.isEmpty() || !line.compare.isEmpty() || !line.baseline.isEmpty()) && line.files.isEmpty())
        wrong(u"--run, --baseline and --compare need a file"_s);
    return line;
}

} // namespace stagewright
