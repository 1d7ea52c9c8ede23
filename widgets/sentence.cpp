#include "widgets/sentence.h"

#include <QRegularExpression>

namespace stagewright {

QString sentence(QString text)
{
    const bool name = text.section(QLatin1Char(' '), 0, 0).contains(QLatin1Char('_')); // of a kernel: as it is
    if (!text.isEmpty() && !name) text[0] = text[0].toUpper();
    return text;
}

QString wholeQuantities(QString text)
{
    static const QRegularExpression quantity(QStringLiteral("([0-9]) (ns|µs|us|ms|s|%|B|KiB|MiB|GiB|TiB|PiB|KB|MB|GB|units?|microbatch|microbatches|steps?|ops?|ranks?)(?![\\w])"));
    return text.replace(quantity, QStringLiteral("\\1\u00a0\\2"));
}

} // namespace stagewright
