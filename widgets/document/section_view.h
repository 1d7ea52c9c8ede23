// SectionView: a section of a document in a panel: a line of what it says or why it is unknown, its figures, plot, table,
// and a button that marks on the timeline what it marks. It knows no section by name. GUI thread only.
#pragma once

#include <QWidget>

#include "traces/report/document/document.h"
#include "widgets/theme.h"

class QLabel;
class QPushButton;
class QVBoxLayout;

namespace stagewright {

class PlotWidget;
class FigureTable;
class PanelSection;

class SectionView : public QWidget {
    Q_OBJECT
public:
    // units: how its figures are printed.
    SectionView(const document::Section& section, const Units& units, QWidget* parent);
    QString lineText() const;
    FigureTable* table() { return m_table; }      // null: it is unknown, or there is none
    PlotWidget* plot() { return m_plot; }         // likewise
    PanelSection* figures() { return m_figures; } // likewise
    QPushButton* marks() { return m_marks; }      // likewise
    void setTheme(const Theme& theme);

signals:
    void spanChosen(stagewright::SpanId span); // of the row chosen; noSpan: it is about none
    void marksChosen(const stagewright::document::Marks& marks);

private:
    void add(const document::Figure& figure);
    void add(const document::Table& table);
    void add(const document::Chart& chart);
    void add(const document::Sentences& sentences);
    void add(const document::Marks& marks);

    Units m_units;
    QString m_title;
    QVBoxLayout* m_page;
    QLabel* m_line;
    FigureTable* m_table = nullptr;
    PlotWidget* m_plot = nullptr;
    PanelSection* m_figures = nullptr;
    QPushButton* m_marks = nullptr;
};

} // namespace stagewright
