// A clause of the libraries, which begin in lower case, as the start of a sentence on screen.
#pragma once

#include <string>

#include <QString>

namespace stagewright {

inline QString sentence(QString text)
{
    if (!text.isEmpty()) text[0] = text[0].toUpper();
    return text;
}
inline QString sentence(const std::string& text) { return sentence(QString::fromStdString(text)); }

} // namespace stagewright
