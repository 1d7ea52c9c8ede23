#include "widgets/units_text.h"

#include <QCoreApplication>

#include "widgets/numbers.h"

namespace stagewright {

QString unitsText(double value, int decimals)
{
    QString number = fixed(value, decimals);
    if (number.contains(QLatin1Char('.'))) {
        while (number.endsWith(QLatin1Char('0'))) number.chop(1);
        if (number.endsWith(QLatin1Char('.'))) number.chop(1);
    }
    return (number == QLatin1String("1") ? QCoreApplication::translate("stagewright::Numbers", "%1 unit") : QCoreApplication::translate("stagewright::Numbers", "%1 units")).arg(number);
}

} // namespace stagewright
