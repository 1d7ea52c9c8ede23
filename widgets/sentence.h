// A clause of the libraries, which begin in lower case, as the start of a sentence on screen.
#pragma once

#include <string>
#include <string_view>

#include <QString>

namespace stagewright {

inline QString sentence(QString text)
{
    const bool name = text.section(QLatin1Char(' '), 0, 0).contains(QLatin1Char('_')); // of a kernel: as it is
    if (!text.isEmpty() && !name) text[0] = text[0].toUpper();
    return text;
}
inline QString sentence(std::string_view text) { return sentence(QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size()))); }
inline QString sentence(const std::string& text) { return sentence(std::string_view(text)); }

// A number and its unit stay on one line: "3.2 ms" with a space that does not break. Copied tables have plain spaces again.
QString wholeQuantities(QString text);

} // namespace stagewright
