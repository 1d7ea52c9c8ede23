#include "widgets/sentence.h"

#include <QRegularExpression>
#include <QTextDocument>

#include "schedules/base/shown_text.h"
#include "schedules/model/kinds.h"
#include "widgets/literals.h"

namespace stagewright {

QString sentence(QString text)
{
    const bool name = text.section(u' ', 0, 0).contains(u'_'); // of a kernel: as it is
    if (!text.isEmpty() && !name) text[0] = text[0].toUpper();
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

QString wholeQuantities(QString text)
{
    static const QRegularExpression quantity(
        u"([0-9]) "
        "(ns|µs|us|ms|s|%|B|KiB|MiB|GiB|TiB|PiB|KB|MB|GB|units?|microbatch|microbatches|steps?|ops?|ranks?)(?![\\w])"_s);
    return text.replace(quantity, u"\\1\u00a0\\2"_s);
}

} // namespace stagewright
