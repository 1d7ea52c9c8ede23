// TablesPanel: the tables of a run's report (traces/report/tables.h), their names at the left, the one chosen at the
// right. It knows no table by name. GUI thread only.
#pragma once

#include <memory>
#include <vector>

#include <QWidget>

#include "traces/report/tables.h"
#include "widgets/numbers.h"
#include "widgets/theme.h"

class QListWidget;
class QSplitter;

namespace stagewright {

class PlotWidget;
class FigureTable;
class SectionView;

class TablesPanel : public QWidget {
    Q_OBJECT
public:
    explicit TablesPanel(QWidget* parent = nullptr);
    // null: no run is shown. units: how its figures are printed.
    void setTables(std::shared_ptr<const std::vector<ReportTable>> tables, const Units& units);
    void setWorking();                // they are being computed
    void choose(const QString& name); // as in analyses.def; nothing where there is none
    int firstWithRows() const;        // row of names(); 0 where none has
    QListWidget* names() { return m_names; }
    SectionView* section() { return m_section; }
    FigureTable* table();     // of the one chosen; null: it is unknown, or none is there
    PlotWidget* plot();       // of its course, above it; null: none
    QString lineText() const; // above it
    void setTheme(const Theme& theme);

signals:
    void spanChosen(stagewright::SpanId span); // of the row chosen; noSpan: it is about none
    void marksChosen(const stagewright::document::Marks& marks);

private:
    void showTable(int row);
    void showSection(const document::Section& section);
    void say(const QString& line); // instead of a table

    QSplitter* m_parts;
    QListWidget* m_names;
    QWidget* m_page;
    SectionView* m_section = nullptr;
    const Theme* m_theme = &Theme::light();
    bool m_chosen = false; // a table, by the user; before: the first with rows
    std::shared_ptr<const std::vector<ReportTable>> m_tables;
    Units m_units;
};

} // namespace stagewright
