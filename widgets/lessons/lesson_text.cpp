#include "widgets/lessons/lesson_text.h"

#include <algorithm>
#include <cmath>

#include <QCoreApplication>
#include <QRegularExpression>
#include <QStringList>

#include "traces/lessons/glossary.h"

namespace stagewright {
namespace {

QString escaped(const QString& text) { return text.toHtmlEscaped(); }

// Plain text with terms as links.
QString withTerms(const QString& words, std::set<std::string>* linked)
{
    if (linked == nullptr) return escaped(words);
    const std::string bytes = words.toStdString();
    QString html;
    std::size_t at = 0;
    for (const lessons::Mention& mention : lessons::mentionsIn(bytes)) {
        if (mention.begin < at || !linked->insert(mention.term->id).second) continue;
        html += escaped(QString::fromStdString(bytes.substr(at, mention.begin - at)));
        html += QStringLiteral("<a href=\"term:%1\">%2</a>")
                    .arg(QString::fromStdString(mention.term->id),
                         escaped(QString::fromStdString(bytes.substr(mention.begin, mention.length))));
        at = mention.begin + mention.length;
    }
    return html + escaped(QString::fromStdString(bytes.substr(at)));
}

QString inlineHtml(const QString& text, std::set<std::string>* linked)
{
    static const QRegularExpression marks(
        QStringLiteral("`([^`]+)`|\\*\\*(.+?)\\*\\*|\\*([^*\\s][^*]*?)\\*|\\[([^\\]]+)\\]\\(([^)\\s]+)\\)"));
    QString html;
    qsizetype at = 0;
    auto found = marks.globalMatch(text);
    while (found.hasNext()) {
        const auto match = found.next();
        html += withTerms(text.mid(at, match.capturedStart() - at), linked);
        if (match.hasCaptured(1))
            html += QStringLiteral("<code>%1</code>").arg(escaped(match.captured(1)));
        else if (match.hasCaptured(2))
            html +=
                QStringLiteral("<span style=\"font-weight:600\">%1</span>").arg(withTerms(match.captured(2), linked));
        else if (match.hasCaptured(3))
            html += QStringLiteral("<i>%1</i>").arg(withTerms(match.captured(3), linked));
        else
            html += QStringLiteral("<a href=\"%1\">%2</a>").arg(escaped(match.captured(5)), escaped(match.captured(4)));
        at = match.capturedEnd();
    }
    return html + withTerms(text.mid(at), linked);
}

} // namespace

QString lessonHtml(const QString& markdown, std::set<std::string>* linked)
{
    QString html;
    QStringList paragraph;
    QString list; // "ul", "ol" while one is open
    auto endParagraph = [&] {
        if (!paragraph.isEmpty())
            html += QStringLiteral("<p style=\"margin:0 0 7px 0\">%1</p>")
                        .arg(inlineHtml(paragraph.join(QLatin1Char(' ')), linked));
        paragraph.clear();
    };
    auto endList = [&] {
        if (!list.isEmpty()) html += QStringLiteral("</%1>").arg(list);
        list.clear();
    };
    static const QRegularExpression bullet(QStringLiteral("^\\s*([-*]|\\d+[.)])\\s+(.*)$"));
    // A numbered list starts with 1: "33. Rank 0 waits" is a sentence about 33.
    const auto numbered = [](const QString& mark) { return mark.at(0).isDigit() ? mark.chopped(1).toInt() : -1; };
    static const QRegularExpression heading(QStringLiteral("^#{1,6}\\s+(.*)$"));
    const QStringList lines = markdown.split(QLatin1Char('\n'));
    bool table = false, titles = false;
    auto endTable = [&] {
        if (table) html += QStringLiteral("</table>");
        table = false;
    };
    for (const QString& line : lines) {
        if (line.startsWith(QLatin1Char('|'))) {
            endParagraph();
            endList();
            QStringList cells = line.trimmed().mid(1).split(QLatin1Char('|'));
            if (!cells.isEmpty() && cells.last().trimmed().isEmpty()) cells.removeLast();
            static const QRegularExpression dashes(QStringLiteral("^[\\s:-]*$"));
            if (std::all_of(cells.begin(), cells.end(),
                            [](const QString& cell) { return dashes.match(cell).hasMatch(); }))
                continue;
            titles = !table;
            if (!table)
                html += QStringLiteral("<table cellspacing=\"0\" cellpadding=\"3\" style=\"margin:0 0 7px 0\">");
            table = true;
            html += QStringLiteral("<tr>");
            for (const QString& cell : cells)
                html += (titles ? QStringLiteral("<th align=\"left\" style=\"font-weight:600\">%1</th>")
                                : QStringLiteral("<td>%1</td>"))
                            .arg(inlineHtml(cell.trimmed(), linked));
            html += QStringLiteral("</tr>");
            continue;
        }
        endTable();
        if (line.trimmed().isEmpty()) {
            endParagraph();
            endList();
        } else if (const auto item = bullet.match(line);
                   item.hasMatch() && (numbered(item.captured(1)) <= 1 || list == QLatin1String("ol"))) {
            endParagraph();
            const QString kind = numbered(item.captured(1)) >= 0 ? QStringLiteral("ol") : QStringLiteral("ul");
            if (kind != list) {
                endList();
                list = kind;
                html += QStringLiteral("<%1 style=\"margin:0 0 7px -22px\">").arg(kind);
            }
            html += QStringLiteral("<li>%1</li>").arg(inlineHtml(item.captured(2), linked));
        } else if (const auto title = heading.match(line); title.hasMatch()) {
            endParagraph();
            endList();
            html += QStringLiteral("<p style=\"margin:4px 0 5px 0; font-weight:600\">%1</p>")
                        .arg(inlineHtml(title.captured(1), nullptr));
        } else {
            paragraph << line.trimmed();
        }
    }
    endParagraph();
    endList();
    endTable();
    return html;
}

QString plainWords(const QString& markdown)
{
    QString text = markdown;
    text.remove(QLatin1Char('*')).remove(QLatin1Char('`'));
    return text.simplified();
}

QString withExpectedTime(const QString& text, double seconds)
{
    if (!(seconds > 0)) return text;
    const int whole = static_cast<int>(std::ceil(std::min(seconds, 1e6)));
    if (whole > 55)
        return QCoreApplication::translate("stagewright::LessonPanel", "%1 (about %2 min)")
            .arg(text)
            .arg((whole + 59) / 60);
    return QCoreApplication::translate("stagewright::LessonPanel", "%1 (about %2 s)")
        .arg(text)
        .arg(whole < 10 ? whole : (whole + 4) / 5 * 5);
}

} // namespace stagewright
