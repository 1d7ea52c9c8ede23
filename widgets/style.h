// The style sheet of the stock widgets (menus, tool buttons, fields, lists, scroll bars) in a theme's colours. Labels
// take their style from the dynamic property "role": "title", "secondary", "faint", "value", "headline", "better",
// "worse".
#pragma once

#include <utility>

#include <QColor>
#include <QList>
#include <QString>

#include "widgets/theme.h"

class QLabel;
class QWidget;

namespace stagewright {

QString styleSheet(const Theme& theme);
// The @names of the style sheet with their colours, some mixed from the theme's; longer names first.
QList<std::pair<QString, QColor>> styleColours(const Theme& theme);
// A label with a role; its text can be selected by mouse if `selectable`.
// Sets the role and behaviour of such a label.
void dressLabel(QLabel* label, const char* role, bool selectable);
QLabel* makeLabel(const QString& text, const char* role, QWidget* parent = nullptr, bool selectable = false);
void setRole(QLabel* label, const char* role);
// The label of a field, which gets the tooltip and is named by it for screen readers.
QLabel* makeFieldLabel(const QString& title, QWidget* field, const QString& tooltip, QWidget* parent);

} // namespace stagewright
