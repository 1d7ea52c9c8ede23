// TablesPanel: the tables of a run's report (traces/report/tables.h), their names at the left by subject, with a field
// to find one, and those that the run has not folded below; the one chosen at the right. It knows no table by name. GUI
// thread only.
#pragma once

#include <memory>
#include <vector>

#include <QWidget>

#include "traces/report/tables.h"
#include "widgets/numbers.h"
#include "widgets/theme.h"

class QLineEdit;
class QSplitter;
class QTreeWidget;
class QTreeWidgetItem;

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
    int firstWithRows() const;        // as chosen(); 0 where none has
    QTreeWidget* names() { return m_names; }
    QLineEdit* filter() { return m_filter; }
    void setChosen(int table);
    int chosen() const; // index of the one shown among allAnalyses(); −1: none
    SectionView* section() { return m_section; }
    FigureTable* table();     // of the one chosen; null: it is unknown, or none is there
    PlotWidget* plot();       // of its course, above it; null: none
    QString lineText() const; // above it
    void setTheme(const Theme& theme);

signals:
    void spanChosen(stagewright::SpanId span); // of the row chosen; noSpan: it is about none
    void marksChosen(const stagewright::document::Marks& marks);

private:
    void list();   // names by subject
    void narrow(); // to what is typed
    void showTable(int table);
    void showSection(const document::Section& section);
    void say(const QString& line); // instead of a table

    QSplitter* m_parts;
    QLineEdit* m_filter;
    QTreeWidget* m_names;
    std::vector<QTreeWidgetItem*> m_items; // by table
    QWidget* m_page;
    SectionView* m_section = nullptr;
    const Theme* m_theme = &Theme::light();
    bool m_chosen = false; // a table, by the user; before: the first with rows
    std::shared_ptr<const std::vector<ReportTable>> m_tables;
    Units m_units;
};

} // namespace stagewright
