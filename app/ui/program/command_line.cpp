#include "app/ui/program/command_line.h"

#include "app/ui/shell/features.h"
#include "schedules/plan/what_if.h"

namespace stagewright {
namespace {

QStringList shownNames()
{
    QStringList names;
    for (const ShowEntry& entry : allShown()) names << QLatin1String(entry.name);
    return names;
}

} // namespace

QString helpText()
{
    return QStringLiteral(R"(Usage: stagewright-ui [FILE…] [options]

Opens run files (.stagewright) and schedules (.csv) in the window. Traces of other tools
(.json, .gz, .sqlite, folders) open in the import dialog.

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
  --schedule NAME         library schedule for --show new and --show block
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
        .arg(shownNames().join(QLatin1Char('|')));
}

CommandLine parseCommandLine(const QStringList& arguments)
{
    CommandLine line;
    auto wrong = [&](const QString& text) {
        if (line.fault.isEmpty()) line.fault = text;
    };
    for (int i = 0; i < arguments.size(); ++i) {
        QString word = arguments[i];
        QString given;
        bool has = false;
        if (word.startsWith(QLatin1String("--")) && word.contains(QLatin1Char('='))) {
            given = word.section(QLatin1Char('='), 1);
            word = word.section(QLatin1Char('='), 0, 0);
            has = true;
        }
        auto value = [&]() -> QString {
            if (has) return given;
            if (i + 1 >= arguments.size()) {
                wrong(QStringLiteral("%1: a value is missing").arg(word));
                return {};
            }
            return arguments[++i];
        };
        if (word == QLatin1String("--help") || word == QLatin1String("-h")) {
            line.help = true;
        } else if (word == QLatin1String("--version")) {
            line.version = true;
        } else if (word == QLatin1String("--screenshot")) {
            line.screenshot = value();
        } else if (word == QLatin1String("--export")) {
            line.exportKind = value().toLower();
            if (!QStringList{"png", "svg", "pdf"}.contains(line.exportKind))
                wrong(QStringLiteral("--export %1: use png, svg or pdf").arg(line.exportKind));
        } else if (word == QLatin1String("-o") || word == QLatin1String("--output")) {
            line.output = value();
        } else if (word == QLatin1String("--size")) {
            const QString text = value();
            bool wide = false;
            bool high = false;
            line.size = {text.section(QLatin1Char('x'), 0, 0).toInt(&wide),
                         text.section(QLatin1Char('x'), 1).toInt(&high)};
            if (!wide || !high || line.size.width() < 320 || line.size.height() < 240 || line.size.width() > 16000 ||
                line.size.height() > 16000)
                wrong(QStringLiteral("--size %1: give WIDTHxHEIGHT, from 320x240 to 16000x16000").arg(text));
        } else if (word == QLatin1String("--theme")) {
            const QString text = value();
            const auto place = QStringList{"light", "dark", "high-contrast"}.indexOf(text);
            if (place < 0)
                wrong(QStringLiteral("--theme %1: use light, dark or high-contrast").arg(text));
            else
                line.theme = static_cast<ThemeName>(place);
        } else if (word == QLatin1String("--run")) {
            line.run = value();
        } else if (word == QLatin1String("--baseline")) {
            line.baseline = value();
        } else if (word == QLatin1String("--select")) {
            line.select = value();
        } else if (word == QLatin1String("--step")) {
            bool ok = false;
            const QString text = value();
            line.step = text.toInt(&ok) - 1;
            if (!ok || line.step < 0) wrong(QStringLiteral("--step %1: give a number from 1").arg(text));
        } else if (word == QLatin1String("--lesson")) {
            line.lesson = value();
        } else if (word == QLatin1String("--lesson-page")) {
            bool ok = false;
            const QString text = value();
            line.lessonPage = text.toInt(&ok) - 1;
            if (!ok || line.lessonPage < 0) wrong(QStringLiteral("--lesson-page %1: give a number from 1").arg(text));
        } else if (word == QLatin1String("--beat")) {
            bool ok = false;
            const QString text = value();
            line.beat = text.toInt(&ok) - 1;
            if (!ok || line.beat < 0) wrong(QStringLiteral("--beat %1: give a number from 1").arg(text));
        } else if (word == QLatin1String("--compare")) {
            const QString first = value();
            has = false;
            line.compare = {first, value()};
            while (line.compare.size() < 4 && i + 1 < arguments.size() &&
                   !arguments[i + 1].startsWith(QLatin1Char('-')) &&
                   !arguments[i + 1].endsWith(QLatin1String(".stagewright")) &&
                   !arguments[i + 1].endsWith(QLatin1String(".csv")))
                line.compare << arguments[++i];
        } else if (word == QLatin1String("--what-if")) {
            line.whatIf = value();
            if (const auto changes = parseWhatIf(line.whatIf.toStdString()); !changes)
                wrong(QStringLiteral("--%1; %2")
                          .arg(QString::fromStdString(changes.error().message),
                               QString::fromStdString(changes.error().remedy)));
        } else if (word == QLatin1String("--schedule")) {
            line.schedule = value();
        } else if (word == QLatin1String("--show")) {
            line.show = value();
            const QStringList parts = shownNames();
            if (!parts.contains(line.show))
                wrong(QStringLiteral("--show %1: use %2 or %3")
                          .arg(line.show, parts.mid(0, parts.size() - 1).join(QStringLiteral(", ")), parts.last()));
        } else if (word == QLatin1String("--no-runs-list")) {
            line.hideRuns = true;
        } else if (word == QLatin1String("--no-memory")) {
            line.hideMemory = true;
        } else if (word == QLatin1String("--style")) {
            const QString text = value();
            if (text != QLatin1String("screen") && text != QLatin1String("paper"))
                wrong(QStringLiteral("--style %1: use screen or paper").arg(text));
            line.picture.paper = text == QLatin1String("paper");
        } else if (word == QLatin1String("--width") || word == QLatin1String("--text")) {
            const bool width = word == QLatin1String("--width");
            const double low = width ? 40 : 4, high = width ? 1200 : 16;
            QString text = value();
            bool ok = false;
            const double number =
                QString(text).remove(width ? QStringLiteral("mm") : QStringLiteral("pt")).trimmed().toDouble(&ok);
            if (!ok || number < low || number > high)
                wrong(QStringLiteral("%1 %2: give %3 from %4 to %5")
                          .arg(word, text, width ? QStringLiteral("millimetres") : QStringLiteral("points"))
                          .arg(low)
                          .arg(high));
            (width ? line.picture.millimetres : line.picture.points) = number;
        } else if (word == QLatin1String("--hatched")) {
            line.picture.hatched = true;
        } else if (word == QLatin1String("--no-caption")) {
            line.picture.caption = false;
        } else if (word == QLatin1String("--no-legend")) {
            line.picture.legend = false;
        } else if (word == QLatin1String("--parts")) {
            line.picture.parts = value().toLower().split(QLatin1Char(','), Qt::SkipEmptyParts);
            if (line.picture.parts.isEmpty()) wrong(QStringLiteral("--parts: give timeline, memory or both"));
            for (const QString& part : line.picture.parts)
                if (part != QLatin1String("timeline") && part != QLatin1String("memory"))
                    wrong(QStringLiteral("--parts %1: use timeline, memory").arg(part));
        } else if (word.startsWith(QLatin1Char('-')) && word.size() > 1) {
            wrong(QStringLiteral("%1: unknown option; --help lists them").arg(word));
        } else {
            line.files << word;
        }
    }
    const bool sizes = line.picture.millimetres > 0 || line.picture.points > 0 || line.picture.hatched;
    if (sizes && !line.picture.paper) wrong(QStringLiteral("--width, --text and --hatched need --style paper"));
    if (!line.exportKind.isEmpty() && line.output.isEmpty())
        wrong(QStringLiteral("--export: name the output file with -o FILE"));
    if (!line.exportKind.isEmpty() && line.files.isEmpty()) wrong(QStringLiteral("--export: name the file to draw"));
    if ((!line.run.isEmpty() || !line.compare.isEmpty() || !line.baseline.isEmpty()) && line.files.isEmpty())
        wrong(QStringLiteral("--run, --baseline and --compare need a file"));
    return line;
}

} // namespace stagewright
