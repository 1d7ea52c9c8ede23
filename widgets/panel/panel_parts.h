// Building blocks of side panels: sections with a title, rows of label and figure, painted bars.
#pragma once

#include <utility>
#include <vector>

#include <QLabel>
#include <QPushButton>
#include <QWidget>

#include "traces/report/document/document.h"
#include "widgets/table_copy.h"
#include "widgets/theme.h"
#include "widgets/themed_widget.h"

class QGridLayout;
class QVBoxLayout;

namespace stagewright {

// A horizontal bar of coloured shares; the rest up to 1 is hatched (idle) or groove.
class ShareBar : public ThemedWidget {
    Q_OBJECT
public:
    struct Part {
        Paint paint = Paint::Forward;
        double share = 0;
    };
    explicit ShareBar(QWidget* parent = nullptr);
    void setParts(std::vector<Part> parts);           // shares of 1, in drawing order; the rest is idle
    void setPlain(double share, bool accent = false); // one grey (or accent) bar without a groove
    QSize sizeHint() const override { return {160, 9}; }

protected:
    void paintEvent(QPaintEvent*) override;

private:
    std::vector<Part> m_parts;
    bool m_plain = false;
    bool m_accent = false;
};

// A label on one line if there is room; otherwise it wraps, with the width of its widest word as its minimum.
class RowLabel : public QLabel {
    Q_OBJECT
public:
    RowLabel(const QString& text, const char* role, QWidget* parent = nullptr, bool selectable = false);
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override;
};

// A button that looks like a link and wraps like RowLabel. Return presses it.
class LinkButton : public QPushButton {
    Q_OBJECT
public:
    LinkButton(const QString& text, const QString& tooltip, QWidget* parent = nullptr);
    QSize minimumSizeHint() const override;
    int heightForWidth(int width) const override;

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    QSize around() const; // what frame and padding add to the text
};

// One section: a title, rows below, a rule at the end. Rows are kept by key: setRow on a known key changes it in place.
class PanelSection : public QWidget {
    Q_OBJECT
public:
    explicit PanelSection(const QString& title, QWidget* parent = nullptr);

    void setTitle(const QString& title);
    void clear(); // removes every row
    void addRow(const QString& label, const QString& value, const QString& tooltip = {},
                document::Tone tone = document::Tone::Plain);
    void addBar(const QString& label, ShareBar* bar, const QString& value, const QString& tooltip = {});
    // a button instead of a label
    void addRow(QWidget* label, const QString& value, const QString& tooltip = {},
                document::Tone tone = document::Tone::Plain);
    void addBar(QWidget* label, ShareBar* bar, const QString& value, const QString& tooltip = {});
    struct Cell {
        QString text;
        const char* role = "value";
        QString tooltip = {};
    };
    // A row of a title and values side by side, each with what is below it.
    void addCells(const std::vector<Cell>& cells, const std::vector<Cell>& below = {});
    // right of the last row's value
    void addChange(const QString& change, const QString& tooltip, document::Tone tone = document::Tone::Faint);
    // the last row, or the widget after it, shows this figure of `report --json`
    void setFigure(const QString& key, const QString& value);
    void addWidget(QWidget* widget);
    void addText(const QString& text, const char* role = "secondary");
    void setTheme(const Theme& theme);
    void setRuled(bool ruled);
    TableText table() const; // its rows, for copying
    // title, rows as "label: value", texts; for copying and for tests
    QString plainText() const;
    // key and value of those marked, in the order of the rows
    const std::vector<std::pair<QString, QString>>& figures() const { return m_figures; }

private:
    void removeAll();
    static QString textOf(const QWidget* label);
    QLabel* m_title;
    QWidget* m_body;
    QGridLayout* m_grid;
    QWidget* m_rule;
    int m_next = 0;
    std::vector<ShareBar*> m_bars;
    std::vector<QString> m_lines;
    std::vector<std::pair<QString, QString>> m_figures;
    const Theme* m_theme = &Theme::light();
};

} // namespace stagewright
