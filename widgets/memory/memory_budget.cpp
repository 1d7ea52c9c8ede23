#include "widgets/memory/memory_budget.h"

#include <array>
#include <cmath>

#include <QRegularExpression>

#include "widgets/literals.h"

namespace stagewright {

namespace {

struct Suffix {
    const char* text;
    double factor;
};
constexpr std::array<Suffix, 8> suffixes{{{"b", 1.0},
                                          {"kib", 1024.0},
                                          {"mib", 1048576.0},
                                          {"gib", 1073741824.0},
                                          {"tib", 1099511627776.0},
                                          {"kb", 1e3},
                                          {"mb", 1e6},
                                          {"gb", 1e9}}};

tl::unexpected<Error> unreadable(const QString& text, const char* remedy)
{
    return fail(ErrorCode::Usage, "budget '" + text.toStdString() + "' is not an amount of memory", remedy);
}

} // namespace

std::optional<Bytes> MemoryBudget::of(const Units& kind) const
{
    if (kind.memory == 1) return bytes;
    if (!units) return std::nullopt;
    return static_cast<Bytes>(std::llround(*units * static_cast<double>(kind.memory)));
}

Result<void> MemoryBudget::set(const QString& given, const Units& kind)
{
    const QString text = given.trimmed();
    const bool counted = kind.memory != 1;
    if (text.isEmpty()) {
        if (counted)
            units.reset();
        else
            bytes.reset();
        return {};
    }
    const char* remedy =
        counted ? "this run counts microbatches: write '3' or '2.5 microbatches'" : "write '6 MiB' or '2 GB'";
    static const QRegularExpression form(u"^([0-9]*[.,]?[0-9]+)\\s*([A-Za-z]*)$"_s);
    const auto match = form.match(text);
    bool ok = false;
    const double amount = match.captured(1).replace(u',', u'.').toDouble(&ok);
    const QString suffix = match.captured(2).toLower();
    if (!match.hasMatch() || !ok || amount <= 0) return unreadable(text, remedy);
    if (counted) {
        static const QStringList counts{QString(), u"microbatch"_s, u"microbatches"_s, u"u"_s, u"unit"_s, u"units"_s};
        if (!counts.contains(suffix) || amount > 1e9) return unreadable(text, remedy);
        units = amount;
        return {};
    }
    double factor = suffix.isEmpty() ? 1048576.0 : 0;
    for (const Suffix& known : suffixes)
        if (suffix == QLatin1String(known.text)) factor = known.factor;
    if (factor <= 0 || amount * factor < 1 || amount * factor > 1e15) return unreadable(text, remedy);
    bytes = static_cast<Bytes>(std::llround(amount * factor));
    return {};
}

QString MemoryBudget::text(const Units& kind) const
{
    const auto amount = of(kind);
    return amount ? bytesText(*amount, kind) : QString();
}

} // namespace stagewright
