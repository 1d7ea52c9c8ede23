#include "widgets/lessons/lesson_text.h"

#include <algorithm>
#include <cmath>

#include <QCoreApplication>
#include <QRegularExpression>
#include <QStringList>

#include "traces/lessons/glossary.h"
#include "widgets/literals.h"

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
        html += u"<a href=\"term:%1\">%2</a>"_s.arg(
            QString::fromStdString(mention.term->id),
            escaped(QString::fromStdString(bytes.substr(mention.begin, mention.length))));
        at = mention.begin + mention.length;
    }
    return html + escaped(QString::fromStdString(bytes.substr(at)));
}

QString inlineHtml(const QString& text, std::set<std::string>* linked)
{
    static const QRegularExpression marks(
        u"`([^`]+)`|\\*\\*(.+?)\\*\\*|\\*([^*\\s][^*]*?)\\*|\\[([^\\]]+)\\]\\(([^)\\s]+)\\)"_s);
    QString html;
    qsizetype at = 0;
    auto found = marks.globalMatch(text);
    while (found.hasNext()) {
        const auto match = found.next();
        html += withTerms(text.mid(at, match.capturedStart() - at), linked);
        if (match.hasCaptured(1))
            html += u"<code>%1</code>"_s.arg(escaped(match.captured(1)));
        else if (match.hasCaptured(2))
            html += u"<span style=\"font-weight:600\">%1</span>"_s.arg(withTerms(match.captured(2), linked));
        else if (match.hasCaptured(3))
            html += u"<i>%1</i>"_s.arg(withTerms(match.captured(3), linked));
        else
            html += u"<a href=\"%1\">%2</a>"_s.arg(escaped(match.captured(5)), escaped(match.captured(4)));
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
            html += u"<p style=\"margin:0 0 7px 0\">%1</p>"_s.arg(inlineHtml(paragraph.join(u' '), linked));
        paragraph.clear();
    };
    auto endList = [&] {
        if (!list.isEmpty()) html += u"</%1>"_s.arg(list);
        list.clear();
    };
    static const QRegularExpression bullet(u"^\\s*([-*]|\\d+[.)])\\s+(.*)$"_s);
    // A numbered list starts with 1: "33. Rank 0 waits" is a sentence about 33.
    const auto numbered = [](const QString& mark) { return mark.at(0).isDigit() ? mark.chopped(1).toInt() : -1; };
    static const QRegularExpression heading(u"^#{1,6}\\s+(.*)$"_s);
    const QStringList lines = markdown.split(u'\n');
    bool table = false, titles = false;
    auto endTable = [&] {
        if (table) html += u"</table>"_s;
        table = false;
    };
    for (const QString& line : lines) {
        if (line.startsWith(u'|')) {
            endParagraph();
            endList();
            QStringList cells = line.trimmed().mid(1).split(u'|');
            if (!cells.isEmpty() && cells.last().trimmed().isEmpty()) cells.removeLast();
            static const QRegularExpression dashes(u"^[\\s:-]*$"_s);
            if (std::all_of(cells.begin(), cells.end(),
                            [](const QString& cell) { return dashes.match(cell).hasMatch(); }))
                continue;
            titles = !table;
            if (!table) html += u"<table cellspacing=\"0\" cellpadding=\"3\" style=\"margin:0 0 7px 0\">"_s;
            table = true;
            html += u"<tr>"_s;
            for (const QString& cell : cells)
                html += (titles ? u"<th align=\"left\" style=\"font-weight:600\">%1</th>"_s : u"<td>%1</td>"_s)
                            .arg(inlineHtml(cell.trimmed(), linked));
            html += u"</tr>"_s;
            continue;
        }
        endTable();
        if (line.trimmed().isEmpty()) {
            endParagraph();
            endList();
        } else if (const auto item = bullet.match(line);
                   item.hasMatch() && (numbered(item.captured(1)) <= 1 || list == "ol"_L1)) {
            endParagraph();
            const QString kind = numbered(item.captured(1)) >= 0 ? u"ol"_s : u"ul"_s;
            if (kind != list) {
                endList();
                list = kind;
                html += u"<%1 style=\"margin:0 0 7px -22px\">"_s.arg(kind);
            }
            html += u"<li>%1</li>"_s.arg(inlineHtml(item.captured(2), linked));
        } else if (const auto title = heading.match(line); title.hasMatch()) {
            endParagraph();
            endList();
            html += u"<p style=\"margin:4px 0 5px 0; font-weight:600\">%1</p>"_s.arg(
                inlineHtml(title.captured(1), nullptr));
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
    text.remove(u'*').remove(u'`');
    return text.simplified();
}

QString withExpectedTime(const QString& text, double seconds)
{
    if (!(seconds > 0)) return text;
    const int whole = static_cast<int>(std::ceil(std::min(seconds, 1e6)));
    if (whole > 55) return u"%1 (about %2 min)"_s.arg(text).arg((whole + 59) / 60);
    return u"%1 (about %2 s)"_s.arg(text).arg(whole < 10 ? whole : (whole + 4) / 5 * 5);
}

} // namespace stagewright
