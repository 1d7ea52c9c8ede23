// Whether texts fit: in labels, buttons, tabs, fields and headers of a window. A text that is elided on purpose has the
// full text in its tooltip. For tests.
#pragma once

#include <QAbstractButton>
#include <QCheckBox>
#include <QComboBox>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QRadioButton>
#include <QScrollBar>
#include <QTabBar>
#include <QTextDocument>

#include "widgets/panel/panel_parts.h"

namespace stagewright {

inline bool internal(const QWidget* widget)
{
    return widget->objectName().startsWith(QLatin1String("qt_")) || qobject_cast<const QScrollBar*>(widget) ||
           qobject_cast<const QMenu*>(widget) || widget->inherits("QAbstractScrollAreaScrollBarContainer") ||
           (widget->parentWidget() && widget->parentWidget()->inherits("QAbstractSpinBox")) ||
           (widget->parentWidget() && widget->parentWidget()->inherits("QComboBox"));
}

inline QString described(const QWidget* widget)
{
    QString text = QString::fromLatin1(widget->metaObject()->className()) + QLatin1Char(' ') + widget->objectName();
    if (const auto* label = qobject_cast<const QLabel*>(widget)) text += QStringLiteral(": ") + label->text();
    if (const auto* button = qobject_cast<const QAbstractButton*>(widget))
        text += QStringLiteral(": ") + button->text();
    return text;
}

inline QString plain(const QString& text) { return QString(text).remove(QLatin1Char('&')); }
inline bool elided(const QString& text) { return text.endsWith(QChar(0x2026)); }

// Fields that overlap, as in a dialog that is too small for its layout.
inline QStringList overlapping(const QWidget* root)
{
    QStringList found;
    QList<QWidget*> fields;
    for (QWidget* widget : root->findChildren<QWidget*>())
        if (widget->isVisibleTo(root) && !internal(widget) &&
            (widget->inherits("QLineEdit") || widget->inherits("QComboBox") || widget->inherits("QAbstractSpinBox") ||
             widget->inherits("QAbstractButton")))
            fields << widget;
    for (qsizetype i = 0; i < fields.size(); ++i)
        for (qsizetype k = 0; k < i; ++k)
            if (fields[i]->parentWidget() == fields[k]->parentWidget() &&
                fields[i]->geometry().intersects(fields[k]->geometry()))
                found << described(fields[i]) + QStringLiteral(" lies over ") + described(fields[k]);
    return found;
}

// Clipped texts among the visible widgets of `root`.
inline QStringList clipped(QWidget* root)
{
    QStringList found;
    const auto tell = [&](const QWidget* widget, int needed, int has) {
        if (needed > has) found << QStringLiteral("%1 (%2 of %3)").arg(described(widget)).arg(has).arg(needed);
    };
    for (QWidget* widget : root->findChildren<QWidget*>()) {
        if (!widget->isVisibleTo(root) || internal(widget) || widget->size().isEmpty()) continue;
        if (auto* label = qobject_cast<QLabel*>(widget)) {
            if (label->text().isEmpty()) continue;
            if (label->wordWrap()) {
                tell(label, label->heightForWidth(label->width()), label->height() + 1);
                continue;
            }
            QString text = label->text();
            if (Qt::mightBeRichText(text) && label->textFormat() != Qt::PlainText) {
                QTextDocument document;
                document.setHtml(text);
                text = document.toPlainText();
            }
            tell(label, label->fontMetrics().boundingRect(QRect(0, 0, 10000, 1000), 0, text).width(),
                 label->contentsRect().width() + 1);
            tell(label, label->fontMetrics().height() * static_cast<int>(1 + text.count(QLatin1Char('\n'))),
                 label->height() + 3);
            if (elided(text) && label->toolTip().isEmpty()) found << described(label) + QStringLiteral(" (no tooltip)");
        } else if (auto* link = qobject_cast<LinkButton*>(widget)) { // it wraps
            tell(link, link->minimumSizeHint().width(), link->width());
            tell(link, link->heightForWidth(link->width()), link->height() + 1);
        } else if (auto* button = qobject_cast<QAbstractButton*>(widget)) {
            const QString text = plain(button->text());
            if (text.isEmpty()) continue;
            const bool box =
                qobject_cast<QCheckBox*>(button) != nullptr || qobject_cast<QRadioButton*>(button) != nullptr;
            QFont font = button->font();
            tell(button, QFontMetrics(font).horizontalAdvance(text) + (box ? 18 : 0), button->width());
            tell(button, QFontMetrics(font).ascent(), button->height());
        } else if (auto* box = qobject_cast<QComboBox*>(widget)) {
            if (!box->isEditable() && box->toolTip().isEmpty())
                tell(box, box->fontMetrics().horizontalAdvance(box->currentText()), box->width() - 16);
        } else if (auto* tabs = qobject_cast<QTabBar*>(widget)) {
            for (int i = 0; i < tabs->count(); ++i)
                if (tabs->tabRect(i).right() <= tabs->width())
                    tell(tabs, tabs->fontMetrics().horizontalAdvance(plain(tabs->tabText(i))),
                         tabs->tabRect(i).width());
        }
    }
    return found;
}

} // namespace stagewright
