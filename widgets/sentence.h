// A clause of the libraries, which start in lower case, as the start of a sentence on screen.
#pragma once

#include <string>
#include <string_view>

#include <QString>

namespace stagewright {

struct KindTraits;

QString sentence(QString text);
// as it is
inline QString qtText(std::string_view text)
{
    return QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size()));
}
// A name or note of a file as it may be shown: control characters and marks of direction as escapes
// (schedules/base/shown_text.h).
QString shownName(std::string_view text);
QString shownName(const QString& text);
// The same for a tooltip: Qt would read HTML in it.
QString shownTip(const QString& text);
inline QString sentence(std::string_view text) { return sentence(qtText(text)); }
inline QString sentence(const std::string& text) { return sentence(std::string_view(text)); }
// Names of files and kernels are words longer than a line: it may end behind their punctuation, and in what is longer
// still without any. By characters of no width, which copied tables are without.
QString breakable(const QString& text);
// For a tooltip, which Qt shows on one line as long as the text: lines of at most some seventy characters.
QString inLines(const QString& text);
QString kindName(const KindTraits& rule); // by its title and text: "Input gradient (I)"

// A number and its unit stay on one line: "3.2 ms" with a space that does not break. Copied tables have plain spaces
// again.
QString wholeQuantities(QString text);

} // namespace stagewright
