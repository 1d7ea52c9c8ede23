#include "widgets/sentence.h"

#include <QRegularExpression>
#include <QTextDocument>

#include "schedules/base/shown_text.h"
#include "schedules/model/kinds.h"
#include "widgets/literals.h"

namespace stagewright {

QString sentence(QString text)
{
    // of a kernel, a function or a file: as it is
    static const QRegularExpression name(u"^\\S*(_|::|/|[^.\\s]\\.\\w\\w)"_s);
    if (!text.isEmpty() && !name.match(text).hasMatch()) text[0] = text[0].toUpper();
    return text;
}

QString kindName(const KindTraits& rule) { return u"%1 (%2)"_s.arg(sentence(rule.title), qtText(rule.text)); }

QString shownName(std::string_view text) { return QString::fromStdString(shownText(text)); }
QString shownName(const QString& text) { return shownName(text.toStdString()); }

QString shownTip(const QString& text)
{
    const QString shown = shownName(text);
    return Qt::mightBeRichText(shown) ? Qt::convertFromPlainText(shown) : shown;
}

QString breakable(const QString& text)
{
    constexpr qsizetype longWord = 20, longStretch = 28;
    static const QRegularExpression places(u"(::|[,<>(_/.&-])(?=[^\\s\\x{200b}])"_s);
    QStringList words;
    for (QString word : text.split(u' ')) {
        if (word.size() >= longWord) word.replace(places, u"\\1\u200b"_s);
        qsizetype stretch = 0;
        for (qsizetype i = 0; i < word.size(); ++i) {
            stretch = word[i] == QChar(0x200b) ? 0 : stretch + 1;
            if (stretch == longStretch && i + 1 < word.size() && word[i + 1] != QChar(0x200b)) {
                word.insert(++i, QChar(0x200b));
                stretch = 0;
            }
        }
        words << word;
    }
    return words.join(u' ');
}

QString inLines(const QString& text)
{
    constexpr qsizetype most = 70;
    QStringList lines;
    for (const QString& line : text.split(u'\n')) {
        QString now;
        for (const QString& word : line.split(u' ')) {
            if (!now.isEmpty() && now.size() + 1 + word.size() > most) {
                lines << now;
                now.clear();
            }
            now += (now.isEmpty() ? QString() : u" "_s) + word;
        }
        lines << now;
    }
    return lines.join(u'\n');
}

QString wholeQuantities(QString text)
{
    static const QRegularExpression quantity(
        u"([0-9]) "
        "(ns|µs|us|ms|s|%|B|KiB|MiB|GiB|TiB|PiB|KB|MB|GB|units?|microbatch|microbatches|steps?|ops?|ranks?)(?![\\w])"_s);
    return text.replace(quantity, u"\\1\u00a0\\2"_s);
}

} // namespace stagewright
